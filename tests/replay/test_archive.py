# SPDX-License-Identifier: MIT
"""kxfs capture, and archives of the jobs that it captures."""

import json
import os
import shutil
import signal
import socket
import subprocess

import harness
import pytest
import records
import store as st
import watching
import yaml
from harness import ROOT, run, wait_for

# --- Captures and archives --------------------------------------------------------------------
# An archive directory, the captures that fill it, and what it contains.

FILES = {"uid", "state", "status", "status.json", "why", "manifest.yaml", "log"}  # each job has these files


class Capture:
    """Runs kxfs capture with the state directory of KX, once or several times one after the
    other."""

    def __init__(self, kx, *options):
        self.kx = kx
        self.state = kx.state
        self.options = [f"state={kx.state}", *options]
        self.ready = kx.state / "ready"
        self.env = kx.env()
        self.proc = None

    def command(self, *options):
        return [self.kx.binary, "capture", "-o", ",".join([*self.options, *options]), "volcano:test"]

    def start(self, *options, **env):
        with open(self.kx.messages, "ab") as err:
            self.proc = subprocess.Popen(self.command(*options), cwd="/", stdout=err, stderr=err,
                                         stdin=subprocess.DEVNULL, env={**self.env, **env})

    def up(self, *options):
        self.ready.unlink(missing_ok=True)  # a killed process leaves this file
        self.start(*options)
        wait_for(lambda: self.ready.exists() or self.proc.poll() is not None, what=self.kx.said)
        assert self.proc.poll() is None, self.kx.said()

    def end(self, sig=signal.SIGTERM, *statuses):
        proc, self.proc = self.proc, None
        proc.send_signal(sig)
        statuses = statuses or (-sig if sig == signal.SIGKILL else 0,)
        assert proc.wait(harness.LIMIT) in statuses, self.kx.said()

    def fails(self):
        """Start kxfs and check that the start fails. Return the message."""
        self.start()
        assert self.proc.wait(harness.LIMIT) == 1
        self.proc = None
        return self.kx.said()

    def close(self):
        if self.proc:
            self.proc.kill()
            self.proc.wait(harness.LIMIT)

    def metric(self, name):
        path = self.state / "metrics"
        text = path.read_text() if path.exists() else ""
        return next((int(line.split()[1]) for line in text.splitlines() if line.startswith(f"kxfs_{name} ")), None)


class Archive:
    """The archive in DIRECTORY."""

    def __init__(self, directory, namespace="test"):
        self.dir = directory
        self.top = directory / namespace

    def folder(self, job):
        """Return the directory of JOB, which is complete once it exists, or None."""
        found = list(self.top.glob(f"????-??-??/{job}"))
        if not found:
            return None
        assert len(found) == 1 and FILES - {"log"} <= {path.name for path in found[0].iterdir()}, list(found[0].iterdir())
        return found[0]

    def has(self, job, what=None):
        return wait_for(lambda: self.folder(job), what=what or f"{job} in the archive")

    def log(self, job, name="main-0/log"):
        return (self.folder(job) / name).read_bytes()

    def state(self, job):
        return (self.folder(job) / "state").read_text().strip()

    def status(self, job):
        return json.loads((self.folder(job) / "status.json").read_text())

    def jobs(self):
        return sorted(path.name for path in self.top.glob("????-??-??/[!.]*"))

    def temporary(self):
        return [name for _, names, files in os.walk(self.dir) for name in names + files
                if name.startswith(".") and name != ".kxfs-archive"]


def print_and_end(server, volcano, job, text, **how):
    """Add JOB, let it print TEXT, and end it."""
    server.store.add(st.JOBS, watching.job(job))
    (pod,) = volcano.start(job)
    volcano.log(pod).append(text)
    volcano.finish(pod, **how)


# --- Archives ---------------------------------------------------------------------------------
# -o archive=DIR writes each finished job of a cluster to DIR as plain files. A job is there completely or not at all,
# whatever happens to kxfs, to its state directory and to DIR.


@pytest.fixture
def archive(tmp_path):
    (tmp_path / "archive").mkdir()
    return Archive(tmp_path / "archive")


@pytest.fixture
def make_capture(make_mount, server, volcano):
    del volcano
    made = []

    def make(archive):
        made.append(Capture(make_mount(server, start=False), f"archive={archive.dir}"))
        return made[-1]

    yield make
    for capture in made:
        capture.close()


@pytest.fixture
def capture(make_capture, archive):
    return make_capture(archive)


def test_plain_files(capture, archive, server, volcano):
    """The archive has all data of a job as plain files, readable without kxfs."""
    capture.up()
    server.store.add(st.JOBS, watching.job("works", tasks={"main": 2}))
    pods = volcano.start("works")
    text = "".join(f"line {i} {'x' * 300}\n" for i in range(3000))
    for i, pod in enumerate(pods):
        volcano.log(pod).append(text[i:])
        volcano.finish(pod, code=i)
    folder = archive.has("works", capture.kx.said)
    assert {path.name for path in folder.iterdir()} - {"events"} == FILES | {"main-0", "main-1"}
    assert archive.log("works") == text.encode() and archive.log("works", "main-1/log") == text[1:].encode()
    merged = archive.log("works", "log").decode().splitlines(keepends=True)
    assert "".join(line.removeprefix("main/0 ") for line in merged if line.startswith("main/0 ")) == text
    assert "".join(line.removeprefix("main/1 ") for line in merged if line.startswith("main/1 ")) == text[1:]
    assert archive.state("works") == "FAILED" == archive.status("works")["state"]
    assert (folder / "uid").read_text() == server.store.find(st.JOBS, "test", "works").uid + "\n"
    assert "kind: Job" in (folder / "manifest.yaml").read_text()
    assert "ended with exit code 1" in (folder / "why").read_text()
    assert folder.parent.name == archive.status("works")["created"][:10]
    assert not archive.temporary()
    wait_for(lambda: capture.metric("archived_jobs_total") == 1 and capture.metric("archive_waiting_jobs") == 0)


@pytest.mark.parametrize("killed", [False, True])
def test_removed_with_nothing_printed(capture, archive, server, volcano, killed):
    """A job that is removed before it has printed anything is archived too, even if kxfs does not run at that time."""
    capture.up()
    server.store.add(st.JOBS, watching.job("mute"))
    volcano.start("mute")
    wait_for(lambda: harness.record(capture.state, "mute").exists(), what=capture.kx.said)
    if killed:
        capture.end(signal.SIGKILL)
    server.store.remove(st.JOBS, "test", "mute")
    if killed:
        capture.up()
    archive.has("mute", capture.kx.said)
    assert archive.state("mute") == "CANCELLED"


def test_second_of_a_name(capture, archive, server, volcano):
    """A second job of the same name gets its own directory."""
    capture.up()
    print_and_end(server, volcano, "twice", "first\n")
    archive.has("twice", capture.kx.said)
    server.store.remove(st.JOBS, "test", "twice")
    wait_for(lambda: not server.store.find(st.JOBS, "test", "twice"))
    print_and_end(server, volcano, "twice", "second\n")
    name = f"twice~{server.store.find(st.JOBS, 'test', 'twice').uid[:8]}"
    archive.has(name, capture.kx.said)
    assert archive.log(name) == b"second\n" and archive.log("twice") == b"first\n"


def test_not_again(capture, archive, server, volcano):
    """kxfs never changes directories of archived jobs: neither after a restart, nor after it has lost its state
    directory."""
    capture.up()
    print_and_end(server, volcano, "once", "text\n")
    folder = archive.has("once", capture.kx.said)
    before = {path: path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))}
    for state_lost in (False, True):
        capture.end()
        if state_lost:
            harness.remove_tree(capture.state)
            capture.state.mkdir(mode=0o700)
        capture.up()
        print_and_end(server, volcano, f"other-{state_lost}".lower(), "")
        archive.has(f"other-{state_lost}".lower(), capture.kx.said)
        wait_for(lambda: capture.metric("archive_waiting_jobs") == 0, what=capture.kx.said)
    assert {path: path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))} == before
    assert archive.jobs() == ["once", "other-false", "other-true"] and not archive.temporary()


def test_several_writers(make_capture, make_mount, archive, server, volcano):
    """Two captures and a mount of the same namespace share an archive. Each job is archived once."""
    captures = [make_capture(archive), make_capture(archive)]
    for one in captures:
        one.up()
    kx = make_mount(server, f"archive={archive.dir},capture=all")
    names = [f"job-{i}" for i in range(20)]
    for name in names:
        print_and_end(server, volcano, name, f"{name}\n" * 1000)
    for name in names:
        archive.has(name, captures[0].kx.said)
        assert archive.log(name) == f"{name}\n".encode() * 1000
    for one in captures:
        wait_for(lambda one=one: one.metric("archive_waiting_jobs") == 0, what=one.kx.said)
    wait_for(lambda: "kxfs_archive_waiting_jobs 0\n" in kx.read(".kxfs/metrics"), what=kx.said)
    assert archive.jobs() == sorted(names)
    wait_for(lambda: not archive.temporary())
    assert kx.read("archive", archive.folder("job-7").parent.name, "job-7", "state") == "SUCCEEDED\n"


def test_own_jobs_alone(make_mount, archive, server, volcano):
    """A mount archives only jobs whose output it captures. Another kxfs may capture the output of other jobs."""
    kx = make_mount(server, f"archive={archive.dir}")
    print_and_end(server, volcano, "theirs", "theirs\n")
    job = kx.submit(harness.app("true"))
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("mine\n")
    volcano.finish(pod)
    archive.has(job.id, kx.said)
    assert archive.log(job.id) == b"mine\n" and (archive.folder(job.id) / "app.yaml").stat().st_mode & 0o077 == 0o044
    assert archive.jobs() == [job.id]


def mount(*words):
    """Mount, and retry while the mount point is busy."""
    wait_for(lambda: harness.run(["mount", *words], check=False).returncode == 0, what=words)


@pytest.fixture
def room(archive):
    """An archive on a small file system of its own."""
    mount("-t", "tmpfs", "-o", "size=256k", "none", str(archive.dir))
    yield str(archive.dir)
    harness.run(["umount", "-l", archive.dir])


@pytest.mark.parametrize("how", ["away", "readonly", "full"])
def test_takes_nothing(room, capture, archive, server, volcano, how):
    """While the archive can't be written, kxfs keeps everything, even after a kill, and reports the error. history_keep
    then removes nothing. When the archive works again, all jobs are archived."""
    capture.up("history_keep=1s")
    print_and_end(server, volcano, "before", "before\n")
    archive.has("before", capture.kx.said)
    if how == "away":
        harness.run(["umount", room])
    elif how == "readonly":
        mount("-o", "remount,ro", room)
    text = "".join(f"line {i}\n" for i in range(100000))
    print_and_end(server, volcano, "during", text, code=7)
    wait_for(lambda: capture.metric("archive_failing") == 1 and capture.metric("archive_waiting_jobs") == 1,
             what=capture.kx.said)
    server.store.remove(st.JOBS, "test", "during")
    said = {"away": "is not the archive that kxfs used last", "readonly": "Read-only file system",
            "full": "No space left on device"}[how]
    assert f"kxfs: archive: {room}" in capture.kx.said() and said in capture.kx.said()
    record = harness.record(capture.state, "during")
    wait_for(lambda: records.is_history(record), what=capture.kx.said)
    capture.end(signal.SIGKILL)
    if how == "away":
        assert "Mount the disk of that archive" in capture.fails()
        assert not list(archive.dir.iterdir())
        mount("-t", "tmpfs", "-o", "size=64m", "none", room)
        (archive.dir / ".kxfs-archive").touch()  # kxfs recognizes the archive by this file
    capture.up("history_keep=1s")
    if how != "away":
        wait_for(lambda: capture.metric("archive_failing") == 1, what=capture.kx.said)
        mount("-o", "remount,rw,size=64m", room)
    archive.has("during", capture.kx.said)
    assert archive.log("during") == text.encode() and archive.status("during")["state"] == "FAILED"
    wait_for(lambda: capture.metric("archive_failing") == 0)
    assert not archive.temporary()
    # The job is archived now, so history_keep takes effect.
    wait_for(lambda: not record.exists(), what=capture.kx.said)


def test_room_that_is_needed(room, capture, archive, server, volcano):
    """If kxfs can't write to the archive and spool_limit is exceeded, kxfs first removes all output that is archived. If
    that is not enough, it removes output that is not archived, and logs a message."""
    capture.up("spool_limit=1M")
    print_and_end(server, volcano, "large", "".join(f"line {i}\n" for i in range(200000)))
    wait_for(lambda: "large: kxfs can't write to the archive, so it removes the job's output" in capture.kx.said(), what=capture.kx.said)
    mount("-o", "remount,rw,size=64m", room)
    archive.has("large", capture.kx.said)
    assert archive.state("large") == "SUCCEEDED"


def test_others_leftovers(capture, archive, server, volcano):
    """kxfs leaves temporary files of another writer alone for a day."""
    for name, days in (("old", 2), ("new", 0)):
        path = archive.top / f".{name}.tmp/main-0"
        path.mkdir(parents=True)
        (path / "log").touch()
        harness.run(["touch", "-d", f"{days} days ago", path.parent])
    capture.up()
    print_and_end(server, volcano, "works", "")
    archive.has("works", capture.kx.said)
    wait_for(lambda: archive.temporary() == [".new.tmp"], what=archive.temporary)


def test_start(capture, archive):
    """kxfs does not start if DIR does not exist or is in the mount."""
    archive.dir.rmdir()
    assert f"{archive.dir}: No such file or directory" in capture.fails()
    archive.dir.mkdir()
    capture.up()
    capture.end()
    assert [path.name for path in archive.dir.iterdir()] == [".kxfs-archive"]
    (archive.dir / ".kxfs-archive").unlink()
    assert f"{archive.dir} has no .kxfs-archive, so this directory is not the archive" in capture.fails()
    (capture.state / "archive").unlink()
    capture.up()


def test_accounting(capture, archive, server, volcano):
    """The example of the manual works."""
    capture.up()
    for i in range(3):
        print_and_end(server, volcano, f"job-{i}", "", code=i % 2)
        archive.has(f"job-{i}", capture.kx.said)
    day = archive.folder("job-0").parent.name[:7]
    found = json.loads(harness.run(f"jq -s . {archive.top}/{day}-*/*/status.json").stdout)
    assert {job["id"]: job["state"] for job in found} == {"job-0": "SUCCEEDED", "job-1": "FAILED", "job-2": "SUCCEEDED"}


# --- Captures by a process with few rights ----------------------------------------------------
# kxfs capture captures output and results of all jobs without a mount, and needs few rights.

UID = 4242  # a user id that is in no user database
# There is no /dev/fuse and no capability. All file systems are read-only, except that of the state directory.
RESTRICTED = """set -e
mount --make-rprivate /
mount --bind "$STATE" "$STATE"
mount -t tmpfs -o mode=755 none /dev
mknod -m 666 /dev/null c 1 3
for dir in /dev /tmp /; do ! mountpoint -q $dir || mount -o remount,bind,ro $dir; done
for dir in / /tmp /dev; do if mkdir $dir/x; then exit 9; fi; done 2>/dev/null
cd /
exec setpriv --reuid=UID --regid=UID --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
""".replace("UID", str(UID))


class RestrictedCapture(Capture):
    """A capture by the user UID, without capabilities and with few writable directories. `give` lets a mount use the
    same state directory."""

    def __init__(self, kx):
        super().__init__(kx)
        config = kx.base / "config"
        shutil.copyfile(kx.more_env["KUBECONFIG"], config)
        self.give(UID, config)
        self.env = {**kx.env(), "KUBECONFIG": str(config), "STATE": str(kx.state)}

    def give(self, uid, *more):
        """Make UID the owner of all files of the capture, and of MORE."""
        for path in (self.kx.base / "san", self.kx.state, *self.kx.state.rglob("*"), *more):
            os.chown(path, uid, uid)

    def command(self, *options):
        return ["unshare", "-m", "sh", "-c", RESTRICTED, "sh", *super().command(*options)]

    def captured(self, job):
        """Return the log of JOB's first replica, from the state directory."""
        logs = [path for path in (harness.folder(self.kx.state, job) / "logs").glob("*") if path.stat().st_size]
        return logs[0].read_bytes() if logs else b""


def says(record, text):
    """True if the file RECORD exists and contains TEXT."""
    return record.exists() and text in record.read_text()


@pytest.fixture
def restricted(make_mount, server, volcano):
    del volcano
    found = RestrictedCapture(make_mount(server, start=False))
    yield found
    found.close()


def test_output_outlives_its_pods(restricted, server, volcano):
    """One job exists before the capture, another one is created later. Both are deleted with their pods while
    nothing is mounted. A later mount shows them, and the server has received only read requests."""
    text = b"".join(b"line %d\n" % i for i in range(20000))
    server.store.add(st.JOBS, watching.job("before"))
    address, file = restricted.kx.base / "notify", restricted.kx.state / "metrics"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(address))
        os.chmod(address, 0o777)
        s.settimeout(harness.LIMIT)
        restricted.start(NOTIFY_SOCKET=str(address))
        got = ""
        while "READY=1" not in got:
            got = s.recv(4096).decode()
    assert f"STATUS=volcano:test is captured in {restricted.kx.state}" in got
    assert restricted.ready.exists()
    server.store.add(st.JOBS, watching.job("later"))
    for job in ("before", "later"):
        (pod,) = volcano.start(job)
        volcano.log(pod).append(text.decode())
        harness.wait_for(lambda: restricted.captured(job) == text, what=f"the output of {job}")
    volcano.log(pod).append("the end\n")
    volcano.finish(pod, code=3)
    harness.wait_for(lambda: restricted.captured("later").endswith(b"the end\n"))
    kept = {job: harness.record(restricted.kx.state, job) for job in ("before", "later")}
    # After a pod is deleted, kxfs can't learn its exit code. So wait until kxfs knows the exit
    # code.
    harness.wait_for(lambda: says(kept["later"], '"exit_code":3'), what="the end of its pod")
    for job, record in kept.items():
        server.store.remove(st.JOBS, "test", job)
        harness.wait_for(lambda record=record: records.is_history(record), what=f"{job} in the history")
    metrics = harness.wait_for(lambda: file.exists() and file.read_text(), what="metrics")
    assert 'kxfs_jobs{state="RUNNING"} ' in metrics and "kxfs_captured_bytes_total " in metrics
    restricted.end()
    assert not restricted.ready.exists()
    assert {verb for verb in ("create", "delete", "patch", "update") if server.count(verb=verb)} == set()
    restricted.give(0)
    kx = restricted.kx.start()
    assert sorted(kx.history()) == ["before", "later"] and kx.ls("jobs") == []
    assert kx.read("history", "before", "main-0", "log", binary=True) == text
    assert kx.read("history", "later", "main-0", "log", binary=True) == text + b"the end\n"
    assert "exit_code: 3" in kx.read("history", "later", "status")


def test_ended_and_killed(restricted, server, volcano):
    """A first run of kxfs capture is ended or killed, and a job prints before the second run. The log has this
    output once. STATE/ready exists only while a run is up."""
    server.store.add(st.JOBS, watching.job("theirs"))
    restricted.up()
    (pod,) = volcano.start("theirs")
    want = b""
    for i, sig in enumerate((signal.SIGTERM, signal.SIGKILL, signal.SIGTERM)):
        want += b"".join(b"%d %d\n" % (i, n) for n in range(5000))
        volcano.log(pod).append(want.decode()[len(restricted.captured("theirs")):])
        harness.wait_for(lambda: restricted.captured("theirs") == want, what="what was printed")
        restricted.end(sig)
        volcano.log(pod).append(f"between {i}\n")
        want += b"between %d\n" % i
        assert restricted.ready.exists() == (sig == signal.SIGKILL)
        restricted.up()
        harness.wait_for(lambda: restricted.captured("theirs") == want, what="what was printed meanwhile")
    restricted.end(signal.SIGKILL)
    server.away()
    restricted.start()
    harness.wait_for(lambda: not restricted.ready.exists(), what="the first one's word to go")
    # kxfs was not up yet: it ends with its own status, or by the signal if it did not handle signals yet.
    restricted.end(signal.SIGTERM, 1, -signal.SIGTERM)


def test_one_for_a_state_directory(restricted):
    """A second capture with the same state directory is refused, and so is a mount."""
    restricted.up()
    said = (f"{restricted.kx.state}: in use by process {restricted.proc.pid}, a kxfs capture: end this process, or give "
            "another directory with -o state=DIR")
    first, restricted.proc = restricted.proc, None
    try:
        restricted.start()
        assert restricted.proc.wait(harness.LIMIT) == 1
    finally:
        restricted.proc = first
    assert said in restricted.kx.said()
    restricted.end()


# --- The sidecar that copies an archive -------------------------------------------------------
# The command of the sidecar in contrib/kubernetes/s3 copies an archive to a bucket.

def sidecar():
    [patch] = yaml.safe_load_all((ROOT / "contrib/kubernetes/s3/sidecar.yaml").read_text())
    [container] = patch["spec"]["template"]["spec"]["containers"]
    return container["command"][-1]


def test_byte_for_byte(make_capture, archive, server, volcano, tmp_path):
    """The bucket has the files of all archived jobs, byte for byte, and nothing else. The bucket is
    a directory here; tests/cluster/test_kxfs_pods.py has one of S3."""
    capture = make_capture(archive)
    top = tmp_path / "bucket"
    (tmp_path / "rclone.conf").write_text(f"[bucket]\ntype = alias\nremote = {top}\n")
    script = sidecar().replace("/etc/rclone/rclone.conf", str(tmp_path / "rclone.conf"))
    script = script.replace("/state/archive", str(archive.dir)).replace("sleep 60", "sleep 1")
    capture.up()
    half = archive.top / ".half.tmp"
    half.mkdir(parents=True)
    (half / "log").write_text("not whole\n")
    for name in ("fine", "fails"):
        text = f"{name} {'x' * 1000}\n" * 3000
        print_and_end(server, volcano, name, text, code=int(name == "fails"))
        archive.has(name, capture.kx.said)
    capture.end()
    files = {path.relative_to(archive.dir): path.read_bytes()
             for path in archive.top.glob("2*/**/*") if path.is_file()}
    assert len(files) > 16

    def copied():
        names = {path.relative_to(top) for path in top.rglob("*") if path.is_file()}
        return names == files.keys() and all((top / path).read_bytes() == files[path] for path in names)

    proc = harness.popen(["sh", "-c", script], env={"HOME": str(tmp_path)})
    try:
        wait_for(copied, what=lambda: run(["find", str(top)]).stdout)
    finally:
        proc.kill()
        proc.wait(60)
