# SPDX-License-Identifier: MIT
"""Local jobs: how they run, the commands of docs/slurm.md, archives of finished jobs."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import textwrap
import time

import harness
import pytest
import records
import yaml
from disk import Disk
from harness import (FINAL, ROOT, alive, app, err_of, grows, marked_pids, popen, python_app, removed, rmdir, run,
                     sh_role, wait_for, write_ctl)
from metrics import Metrics

# --- Runs -------------------------------------------------------------------------------------
# Local jobs: real processes, retry policies, exit codes, signals, cancel, big and odd output.


def processes_of(ident):
    """Return the processes whose environment names the job IDENT."""
    needle = f"KXFS_JOB={ident}".encode()
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if needle in pathlib.Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                found.append(int(entry))
        except OSError:
            pass
    return found


def gone(ident):
    wait_for(lambda: not processes_of(ident), what=f"the processes of {ident} to end")


# --- the environment of a program ---


def test_environment(make_kx):
    kx = make_kx(env={"FROM_THE_MOUNT": "yes"})
    job = kx.submit(app("env", env={"OWN": "a b$$c", "HERE": "${app_id}", "N": "${replica_id}",
                                    "UNKNOWN": "${nothing}"}, num_replicas=2))
    job.finish()
    env = dict(line.split("=", 1) for line in job.log("main-1").decode().splitlines())
    assert env["OWN"] == "a b$c" and env["HERE"] == job.id and env["N"] == "1"
    assert env["UNKNOWN"] == "${nothing}" and env["FROM_THE_MOUNT"] == "yes"
    assert env["TORCHX_RANK0_HOST"] == "localhost" and env["KXFS_JOB"] == job.id


@pytest.mark.parametrize("handle, seen", [(None, "kxfs://torchx/{}"), ("kxfs://mine/${app_id}", "kxfs://mine/{}"),
                                          ("kubernetes://torchx/${app_id}", "kxfs://torchx/{}")])
def test_handle(kx, handle, seen):
    """TORCHX_JOB_ID of a job is the handle in its document, if that handle has the scheme kxfs."""
    job = kx.submit(app("echo $TORCHX_JOB_ID", env={"TORCHX_JOB_ID": handle} if handle else {}))
    job.finish()
    assert job.log().decode() == seen.format(job.id) + "\n"


def test_surroundings(kx):
    """A program finds the working directory, descriptors, terminal, process group and signals that it expects."""
    job = kx.submit(python_app("""
import os, signal
print("cwd", os.getcwd())
print("fds", sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")))
print("stdin", os.readlink("/proc/self/fd/0"))
print("leader", os.getpgrp() == os.getpid())
print("pipe", signal.getsignal(signal.SIGINT) == signal.default_int_handler)
status = open("/proc/self/status").read()
print("blocked", int(status.split("SigBlk:")[1].split()[0], 16))
print("ignored", int(status.split("SigIgn:")[1].split()[0], 16) & ~(1 << (signal.SIGPIPE - 1)) & ~(1 << 24))
try:
    open("/dev/tty")
except OSError:
    print("no tty")
"""))
    job.finish()
    lines = job.log().decode().splitlines()
    assert f"cwd {kx.work}" in lines
    assert "fds [0, 1, 2]" in lines
    assert "stdin /dev/null" in lines
    assert "leader True" in lines and "pipe True" in lines
    assert "blocked 0" in lines and "ignored 0" in lines
    assert "no tty" in lines


def in_dir(path, script="pwd", **fields):
    return json.dumps({**json.loads(app(script, **fields)), "scheduler_args": {"cwd": str(path)}}, indent=1)


def test_directory_of_a_job(kx, tmp_path):
    """Programs start in the directory that the run option cwd names, whatever the directory of the mount is."""
    tmp_path.chmod(0o755)
    for place in (tmp_path / "a b ü", tmp_path / "link"):
        if place.name == "link":
            place.symlink_to(tmp_path / "a b ü")
        else:
            place.mkdir()
        job = kx.submit(in_dir(place))
        job.finish()
        assert os.path.samefile(job.log().decode().strip(), place)
        assert yaml.safe_load(job.read("manifest.yaml"))["work_dir"] == str(place)


def test_directory_in_the_environment(kx, tmp_path):
    """$PWD is the directory in which the program starts."""
    tmp_path.chmod(0o755)
    job = kx.submit(in_dir(tmp_path, roles=[{"name": "main", "image": "none", "entrypoint": "printenv", "args": ["PWD"]}]))
    job.finish()
    assert job.log().decode() == f"{tmp_path}\n"


@pytest.mark.parametrize("door", ["submit", "dryrun"])
def test_directory_that_is_none(kx, tmp_path, door):
    (tmp_path / "file").write_text("")
    cases = {"work": "must be an absolute path"}
    inside = "is inside the mount, and a job that runs there would prevent unmounting: name another directory"
    for place, why in [(tmp_path / "missing", "No such file or directory; jobs can't run in this directory"),
                       (tmp_path / "file", "Not a directory; jobs can't run in this directory"),
                       (kx.mnt, inside),
                       (kx.mnt / "jobs", inside)]:
        cases[place] = f"{place}: {why}"
    for place, why in cases.items():
        assert err_of(kx.write, f"{door}/x.yaml", in_dir(place)) == "EINVAL"
        said = kx.read(door, "x.yaml.error")
        assert re.fullmatch(rf"x.yaml:\d+:\d+: scheduler_args.cwd: {re.escape(why)}\n", said), said
    assert kx.ls("jobs") == []


def test_arguments_are_not_split(kx):
    job = kx.submit(app("", roles=[{"name": "main", "image": "none", "entrypoint": "printf",
                                    "args": ["%s|", "a b", "", "*", "$HOME", "${replica_id}", "ü"]}]))
    job.finish()
    assert job.log().decode() == "a b||*|$HOME|0|ü|"


def test_several_roles(kx):
    """The directories of replicas are called like their roles."""
    job = kx.submit(app("", roles=[sh_role("echo reader", "Read_er.1", num_replicas=2),
                                   sh_role("echo trainer", "trainer", num_replicas=3, min_replicas=1)]))
    job.finish()
    names = sorted(d for d in os.listdir(job.dir) if "-" in d)
    assert names == ["Read_er.1-0", "Read_er.1-1", "trainer-0", "trainer-1", "trainer-2"]
    assert job.log("Read_er.1-1") == b"reader\n" and job.log("trainer-2") == b"trainer\n"
    roles = job.status()["roles"]
    assert [(r["name"], r["desired"]) for r in roles] == [("Read_er.1", 2), ("trainer", 3)]


def test_resources_and_mounts_are_recorded(kx):
    job = kx.submit(app("true", resource={"cpu": 4000, "memMB": 10**9, "gpu": 8},
                        mounts=["type=bind,src=/nonexistent,dst=/data,readonly"]))
    job.finish()
    assert "/nonexistent" in job.read("manifest.yaml")


# --- the end of a job ---


@pytest.mark.parametrize(("script", "state", "code", "sig"), [
    ("true", "SUCCEEDED", 0, None),
    ("exit 7", "FAILED", 7, None),
    ("exit 255", "FAILED", 255, None),
    ("kill -TERM $$", "FAILED", None, signal.SIGTERM),
    ("kill -KILL $$", "FAILED", None, signal.SIGKILL),
    ("kill -ABRT $$", "FAILED", None, signal.SIGABRT),
])
def test_exit(kx, script, state, code, sig):
    job = kx.submit(app(f"echo before; {script}"))
    assert job.finish(*FINAL) == state
    replica = job.replica()
    assert (replica["state"], replica["exit_code"], replica["signal"]) == (state, code, sig)
    assert job.log() == b"before\n"
    why = job.read("why")
    if state == "SUCCEEDED":
        assert why == ""
    else:
        # `why` shows which replica failed, and how.
        assert "main-0" in why or "main/0" in why
        assert str(code if sig is None else int(sig)) in why


def test_one_of_several_fails(kx):
    """If one replica fails, the job fails and its other replicas are ended."""
    job = kx.submit(app("""
if [ "$N" = 1 ]; then echo failing; exit 5; fi
echo $$; sleep 1000
""", num_replicas=3, env={"N": "${replica_id}"}))
    job.finish("FAILED")
    assert job.replica("main-1")["exit_code"] == 5
    assert "main-1" in job.read("why") or "main/1" in job.read("why")
    gone(job.id)


# --- retries -------------------------------------------------------------------------------------

# Replica 1 fails in its first attempt, after all replicas have printed. Replica 0 and the other role run until replica
# 1 has restarted.
FAIL_ONCE = """
echo "attempt of $N"
touch "said-$N"
if [ "$N" = 1 ]; then
	while [ ! -e said-0 ] || [ ! -e said-other ]; do sleep 0.05; done
	[ -e failed ] || { touch failed; exit 9; }
	touch done
fi
while [ ! -e done ]; do sleep 0.05; done
"""


def attempts(job):
    return {f"{role['name']}-{rep['id']}": rep["attempt"]
            for role in job.status()["roles"] for rep in role["replicas"]}


@pytest.mark.parametrize(("policy", "expected"), [
    ("APPLICATION", {"a-0": 1, "a-1": 1, "b-0": 1}),
    ("ROLE", {"a-0": 1, "a-1": 1, "b-0": 0}),
    ("REPLICA", {"a-0": 0, "a-1": 1, "b-0": 0}),
    ("HOT_SPARE", {"a-0": 0, "a-1": 1, "b-0": 0}),
])
def test_retry_policy(kx, policy, expected):
    job = kx.submit(app("", roles=[
        sh_role(FAIL_ONCE, "a", num_replicas=2, max_retries=2, retry_policy=policy,
                env={"N": "${replica_id}"}),
        sh_role(FAIL_ONCE, "b", max_retries=2, retry_policy=policy, env={"N": "other"}),
    ]))
    job.finish()
    assert attempts(job) == expected
    for name, n in expected.items():
        label = b"attempt of other\n" if name == "b-0" else f"attempt of {name[-1]}\n".encode()
        assert job.log(name) == label
        for attempt in range(n):
            assert job.log(name, f"log.{attempt}") == label
    assert job.status()["retries"] == 1
    assert job.status()["max_retries"] == 2


def test_retries_are_used_up(kx):
    """`log` is the log of the newest attempt. log.0, log.1 and so on are those of earlier attempts, and files of their
    own."""
    job = kx.submit(app("echo >> tries; echo try $(wc -l < tries); exit 3", max_retries=2))
    job.finish("FAILED")
    assert job.replica()["attempt"] == 2 and job.status()["retries"] == 2
    names = ("log.0", "log.1", "log")
    assert [job.log(name=n) for n in names] == [b"try 1\n", b"try 2\n", b"try 3\n"]
    assert job.read("log") == "main/0 try 1\nmain/0 try 2\nmain/0 try 3\n"
    assert len({os.stat(job / "main-0" / name).st_ino for name in names}) == 3
    assert sorted(os.listdir(job / "main-0")) == ["live", "log", "log.0", "log.1", "stamped", "state", "status", "usage"]
    for wrong in ("log.2", "log.01", "log.", "log.99999999999999999999", "log.-1", "log.0x", "x.log"):
        assert not os.path.lexists(job / "main-0" / wrong), wrong


# --- cancel --------------------------------------------------------------------------------------


# The second attempt prints until it is terminated.
SECOND = """
cd {0}
[ -e tried ] && while :; do echo tick; sleep 0.05; done
touch tried
while [ ! -e go ]; do sleep 0.02; done
exit 1
"""


@pytest.fixture
def make_slow(make_kx):
    """make_slow(options) returns a mount, a disk, and a directory for jobs on that disk. `disk.hang("getattr", "/dir")`
    lets the directory hang."""
    disks = []

    def make(options):
        # LeakSanitizer stops all threads at the end, but it can't stop one that waits for this disk.
        kx = make_kx(options, env={"ASAN_OPTIONS": "detect_leaks=0"})
        (kx.base / "place").mkdir()
        disks.append(Disk(kx, kx.base / "place"))
        (kx.base / "disk/dir").mkdir()
        return kx, disks[0], kx.base / "place/dir"

    yield make
    for disk in disks:
        disk.close()


def test_directories_that_hang(make_slow):
    """kxfs refuses a document that names a hanging directory. The document delays neither other requests nor the end of
    kxfs."""
    kx, disk, place = make_slow("grace=1")
    disk.hang("getattr", "/dir")
    files = [kx.base / f"{i}.yaml" for i in range(6)]
    for file in files:
        file.write_text(in_dir(place, "true"))
    with disk.still():
        waiting = [popen(["cp", file, kx / "submit"]) for file in files]
        wait_for(lambda: disk.hangs("/dir"), what="the directory to be looked at")
        kx.submit(app("true")).finish("SUCCEEDED")
        for p in waiting:
            assert p.wait(timeout=60) != 0
        for file in files:
            assert "does not respond; jobs can't run in this directory" in kx.read("submit", f"{file.name}.error")
        assert kx.end() == 0


def test_held_while_its_directory_hangs(make_slow):
    """A held job whose directory does not respond when it is released is launched later."""
    kx, disk, place = make_slow("grace=1")
    held = json.loads(in_dir(place, "true"))
    held["scheduler_args"]["hold"] = True
    job = kx.submit(json.dumps(held))
    disk.hang("getattr", "/dir")
    write_ctl(job, "release")
    wait_for(lambda: "does not respond" in job.read("why"), what=lambda: job.read("why"))
    assert job.state() == "PENDING", job.read("status")
    disk.go_on()
    job.finish("SUCCEEDED")


@pytest.mark.parametrize("action", ["cancel", "suspend"])
def test_action_during_the_start(make_slow, action):
    """If a user cancels or suspends a job while its program is being started, the action takes
    effect as soon as the program has started."""
    kx, disk, place = make_slow("grace=1000")
    job = kx.submit(in_dir(place, SECOND.format(kx.work), max_retries=1, retry_policy="REPLICA"))
    # Let the disk hang only after the first attempt has begun, because its shell may look up its directory.
    wait_for(lambda: (kx.work / "tried").exists(), what="the first attempt")
    disk.hang("getattr", "/dir")
    (kx.work / "go").touch()
    wait_for(lambda: disk.hangs("/dir"), what="the second start to hang")
    if action == "cancel":
        rmdir(job.dir)
        disk.go_on()
        wait_for(lambda: "phase: Cancelled" in (job.old / "status").read_text(), what="the end of the job")
    else:
        write_ctl(job, "suspend")
        disk.go_on()
        wait_for(lambda: Metrics(kx)("local_starts_total") == 2, what="the second attempt")
        wait_for(lambda: not grows(job), what="its last output")
        before = len(job.log())
        write_ctl(job, "resume")
        wait_for(lambda: len(job.log()) > before, what="it to print again")
        rmdir(job.dir)
    gone(job.id)


def test_many_last_words(kx):
    """All output that a program prints after SIGTERM is in its log, to the last byte."""
    job = kx.submit(python_app("""
import os, signal, sys, time
def last(*_):
    for i in range(100000):
        sys.stdout.buffer.write(b"%09d\\n" % i)
    sys.stdout.flush()
    os.system("echo last > /dev/stderr")
    sys.exit(0)
signal.signal(signal.SIGTERM, last)
print("ready", flush=True)
while True:
    time.sleep(1)
"""))
    job.until_logged("ready\n")
    rmdir(job.dir)
    wait_for(lambda: "phase: Cancelled" in (job.old / "status").read_text())
    lines = [b"ready\n", *(b"%09d\n" % i for i in range(100000)), b"last\n"]
    assert (job.old / "main-0/log").read_bytes() == b"".join(lines)
    assert (job.old / "log").read_bytes() == b"".join(b"main/0 " + line for line in lines)
    assert (job.old / "state").read_text() == "CANCELLED\n"


def test_cancel_of_one_that_ignores_sigterm(make_kx):
    kx = make_kx("grace=1")
    job = kx.submit(app('trap "" TERM; echo $$; while :; do sleep 0.1; done', num_replicas=2))
    pids = [job.pid("main-0"), job.pid("main-1")]
    begin = time.monotonic()
    rmdir(job.dir)
    # rmdir returns when the cancel is accepted, before all processes have ended.
    assert kx.ls("jobs") == []
    gone(job.id)
    assert time.monotonic() - begin >= 0.9
    # A dying process loses its environment, which identifies it, a moment before it ends.
    wait_for(lambda: not any(alive(pid) for pid in pids), what="the processes to end")
    wait_for(lambda: (job.old / "state").read_text() == "CANCELLED\n")


def test_cancel_takes_daemons_too(make_kx):
    """Cancelling a job also ends its orphaned children in other sessions."""
    kx = make_kx("grace=1")
    job = kx.submit(app("setsid sh -c 'sleep 1000 & sleep 1000' & (setsid sleep 1000 &) ; echo ready; sleep 1000"))
    job.until_logged("ready")
    wait_for(lambda: len(processes_of(job.id)) >= 4)
    rmdir(job.dir)
    gone(job.id)


def test_daemons_do_not_outlive_the_replica(kx):
    """Remaining processes of a finished replica neither delay its end nor continue to run."""
    job = kx.submit(app("(setsid sleep 1000 &); echo done"))
    job.finish()
    gone(job.id)
    assert job.log() == b"done\n"


def test_headless_daemon_does_not_outlive_the_replica(kx):
    """A remaining process whose first thread has ended is killed, too."""
    job = kx.submit(python_app("""
import ctypes, os, threading, time
if os.fork() == 0:
    os.setsid()
    threading.Thread(target=time.sleep, args=(1000,)).start()
    print(os.getpid(), flush=True)
    ctypes.CDLL(None).pthread_exit(None)
while not os.path.exists("go"):
    time.sleep(0.05)
"""))
    pid = job.pid()
    wait_for(lambda: not alive(pid), what="the first thread to end")
    (kx.work / "go").touch()
    try:
        job.finish()
        assert not os.path.exists(f"/proc/{pid}")
    finally:
        harness.kill(pid)


def test_who_is_not_of_the_job_holds_nothing_back(kx):
    """A process that does not belong to the job has the job's output open. The job ends anyway, and .kxfs/log
    reports what became of the output."""
    job = kx.submit(app("echo $$; while [ ! -e go ]; do sleep 0.02; done; echo done"))
    pid = job.pid()
    fd = os.open(f"/proc/{pid}/fd/1", os.O_WRONLY)
    (kx.work / "go").touch()
    job.finish()
    assert job.log() == f"{pid}\ndone\n".encode()
    assert job.id in kx.read(".kxfs", "log") and "still has its output open" in kx.read(".kxfs", "log")
    assert err_of(os.write, fd, b"late") == "EPIPE"
    os.close(fd)


# --- output --------------------------------------------------------------------------------------


def test_100_mb(kx):
    """100 MB of output at full speed are complete and exact, in the replica's log and in the merged log."""
    job = kx.submit(python_app("""
import sys
block = b"".join(b"%011d\\n" % i for i in range(87382))[:1 << 20]
for i in range(100):
    sys.stdout.buffer.write(block)
"""))
    job.finish()
    block = b"".join(b"%011d\n" % i for i in range(87382))[:1 << 20]
    expected = hashlib.sha256()
    for _ in range(100):
        expected.update(block)
    assert os.stat(job / "main-0/log").st_size == 100 << 20
    got = run(["sha256sum", str(job / "main-0/log")]).stdout.split()[0]
    assert got == expected.hexdigest()
    stripped = run(f"sed 's,^main/0 ,,' {job.dir}/log | head -c {100 << 20} | sha256sum").stdout.split()[0]
    assert stripped == expected.hexdigest()


def test_full_disk(kx):
    """If a log can't grow any more, kxfs ends the program that writes to it, and all files report the reason."""
    soft, hard = resource.prlimit(kx.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(kx.pid, resource.RLIMIT_FSIZE, (1 << 20, hard))
    job = kx.submit(app("exec yes"))
    job.until("FAILED")
    resource.prlimit(kx.pid, resource.RLIMIT_FSIZE, (soft, hard))
    assert os.stat(job / "main-0/log").st_size == 1 << 20
    replica = job.replica()
    assert (replica["reason"], replica["signal"]) == ("OutputLost", signal.SIGPIPE)
    for text in (replica["message"], job.status()["message"], job.read("why"), kx.read(".kxfs", "log")):
        assert "its output can't be written: File too large" in text


def test_end_on_a_full_disk(make_kx):
    """Even on a full disk, the next mount shows the result that `wait` has returned, because kxfs reserved space for
    it at the launch."""
    kx = make_kx(start=False)
    with harness.tmpfs(kx.state, "4m"):
        kx.start()
        jobs = [kx.submit(app("while [ ! -e go ]; do sleep 0.02; done; exit $N", num_replicas=n,
                              env={"N": "${replica_id}"}))
                for n in (1, 2, 1)]
        for job in jobs:
            job.until("RUNNING")
        with contextlib.suppress(OSError), open(kx.state / "filler", "wb", buffering=0) as f:
            while True:
                f.write(b"x" * 4096)
        (kx.work / "go").touch()
        told = [job.read("wait") for job in jobs]
        assert told == ["SUCCEEDED\n", "FAILED\n", "SUCCEEDED\n"]
        status = [job.status() for job in jobs]
        kx.end()
        os.remove(kx.state / "filler")
        kx.start()
        assert [job.read("wait") for job in jobs] == told
        assert [job.status() for job in jobs] == status
        assert not list(kx.state.glob("output/*/.*"))
        assert kx.end() == 0


def test_jobs_side_by_side(kx):
    """A hundred jobs run at the same time, and each has its own result and output."""
    jobs = [kx.submit(app(f"echo {i}; exit {i % 3}")) for i in range(100)]
    for i, job in enumerate(jobs):
        job.finish("FAILED" if i % 3 else "SUCCEEDED")
        assert job.log() == f"{i}\n".encode()
    assert len({job.id for job in jobs}) == 100


# --- Slurm ------------------------------------------------------------------------------------
# Each command in the tables of docs/slurm.md works on a mount. Volcano and local jobs accept each field.

PAGE = (ROOT / "docs/slurm.md").read_text()
# Tests must not send mail, so they remove this from commands.
UNTESTED = re.compile(r"; mail .*")


def table(heading):
    """Return the rows of the first table after HEADING as (left cell, right cell without backquotes)."""
    rows = re.search(re.escape(heading) + r"\n(?:.*\n)*?\| Slurm \| here \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE)[1]
    return [(left, re.fullmatch(r"`(.*)`", right)[1]) for left, right in re.findall(r"^\| (.*) \| (.*) \|$", rows, re.M)]


def readers(job):
    """Return how many blocking files the processes of this test have open."""
    n = 0
    for pid in marked_pids():
        with contextlib.suppress(OSError):
            n += sum(f"/{job.id}/.live/" in os.readlink(fd) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    return n


def test_commands(kx):
    """Run the commands in order, with one job. Commands that wait begin before the job ends, and end with it."""
    for name in ("train.yaml", "next.yaml"):
        (kx.work / name).write_text(app("echo begin; exec sleep 10000", name=name[:-5]))
    held = {**json.loads(app("true", name="held")), "scheduler_args": {"hold": True}}
    (kx.work / "held.yaml").write_text(json.dumps(held))
    job, waiting = None, []

    def adapt(command):
        command = command.replace("/usr/share/doc/kxfs/examples", str(ROOT / "contrib/examples"))
        command = re.sub(r"\bcp (\w+\.yaml)", rf"cp {kx.work}/\1", UNTESTED.sub("", command))
        return f"cd {kx.mnt} && {{ {command.replace('ID', job.id if job else 'ID')}; }}"

    for slurm, command in table("## Commands"):
        if slurm == "`scancel ID`":
            job.until("RUNNING")
            rows = table("These wait for the end of the job:")
            waiting = [(line, popen(adapt(line), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)) for _, line in rows]
            assert len(waiting) == 5
            wait_for(lambda: readers(job) == len(waiting), what="the commands to read")
            removed(run(adapt(command), check=False), job.dir)
        else:
            run(adapt(command))
        if slurm == "`sbatch train.sh`":
            job = kx.job_of("train.yaml")
            job.until_logged("begin")
    for command, p in waiting:
        out = p.communicate(timeout=120)[0].decode()
        assert (p.returncode == 0) == ("grep" not in command), f"{command}: {out}"
    (left,) = kx.jobs()
    left.finish()
    assert job.id in kx.history() and left.id.startswith("held-")


@pytest.mark.parametrize("backend", ["volcano:ns", "local:"])
def test_fields(kx, tmp_path, backend):
    for slurm, field in table("## Options of sbatch"):
        tree = {"name": "a", "roles": [{"name": "r", "image": "i", "entrypoint": "e"}]}
        (tree["roles"][0] if "(role)" in slurm else tree).update(yaml.safe_load(field))
        if backend != "local:":
            tree.setdefault("scheduler_args", {}).setdefault("queue", "q")
        (tmp_path / "a.yaml").write_text(json.dumps(tree))
        p = run([kx.binary, f"--dry-run={tmp_path / 'a.yaml'}", backend], check=False)
        assert p.returncode == 0, f"{slurm}: {p.stderr}"


def test_one_at_a_time(kx, tmp_path):
    """The example with flock: jobs that are submitted at the same time run one after the other."""
    example = textwrap.dedent(re.search(r"^    name: train\n(?:    .*\n)+", PAGE, re.M)[0])
    example = example.replace("/tmp/train.lock", f"{tmp_path}/lock").replace("echo begin", f"echo begin | tee -a {tmp_path}/order")
    example = example.replace("echo end", f"echo end | tee -a {tmp_path}/order")
    for job in [kx.submit(example) for _ in range(3)]:
        job.finish()
        assert job.log() == b"begin\nend\n"
    assert (tmp_path / "order").read_text() == "begin\nend\n" * 3


# --- Archives ---------------------------------------------------------------------------------
# -o archive=DIR with local jobs copies finished jobs to a directory outside the mount.


@pytest.fixture
def place(tmp_path):
    (tmp_path / "archive").mkdir()
    return tmp_path / "archive"


def folder(place, job):
    found = list((place / "local").glob(f"2*/{job.id}"))
    return found[0] if found else None


def test_a_job(make_kx, place):
    """The archive has all files of a finished job, byte for byte, and the link `archive` leads to it."""
    kx = make_kx(options=f"archive={place}")
    job = kx.submit(app("echo out; echo err >&2; exit $(( TRY ))", num_replicas=2, env={"TRY": "3"}))
    job.finish("FAILED")
    found = wait_for(lambda: folder(place, job), what=kx.said)
    assert os.readlink(kx / "archive") == str(place / "local") and "archive" in kx.ls()
    for name in ("state", "status", "why", "manifest.yaml", "app.yaml", "log", "main-0/log", "main-1/log"):
        assert (found / name).read_bytes() == job.read(name, binary=True), name
    assert json.loads((found / "status.json").read_text())["state"] == "FAILED"
    assert (found / "app.yaml").stat().st_mode & 0o777 == harness.permissions(job / "app.yaml")
    [one] = json.loads(run(f"jq -s . {kx}/archive/2*/*/status.json".replace(str(kx), str(kx.mnt))).stdout)
    assert one["id"] == job.id
    assert f'archive: "{place}"' in kx.read(".kxfs/info") and 'archive_error: ""' in kx.read(".kxfs/info")
    assert not list(place.rglob("*.tmp"))


def test_damaged_document(make_kx, place):
    """If a job's document is damaged while it runs, history/ and the archive show its result, but not the document."""
    kx = make_kx(options=f"archive={place},linger")
    job = kx.submit(app("echo runs; until test -e go; do sleep 0.1; done"))
    job.until_logged("runs\n")
    record = kx.record(job.id)
    # Wait, because kxfs neither shows nor launches a job whose document is damaged before its
    # record is LIVE.
    wait_for(lambda: records.head_of(record)["state"]["state"] == "LIVE", what="the record to be LIVE")
    kx.end(signal.SIGKILL)
    record.write_bytes(record.read_bytes().replace(b"echo runs; until", b"echo runs; UNTIL"))
    kx.start()
    (kx.work / "go").touch()
    job.finish()
    found = wait_for(lambda: folder(place, job), what=kx.said)
    assert (found / "main-0/log").read_text() == "runs\n" and not (found / "app.yaml").exists()
    assert f"{job.id}: app.yaml is damaged; kxfs archives the job without the damaged part" in kx.said()
    assert 'archive_error: ""' in kx.read(".kxfs/info") and b'"over":true' in record.read_bytes()


def test_damaged_log(make_kx, place):
    """If a merged log is damaged, its readable part is archived, and so is the rest of the job."""
    kx = make_kx(options="history_keep=1d")
    job = kx.submit(app("echo one; echo two", num_replicas=2))
    job.finish()
    logs = kx.folder(job.id) / "logs"
    wait_for(lambda: job.read("log").count("two") == 2, what="the merged log")
    kx.end()
    with next(logs.iterdir()).open("r+b") as f:
        f.truncate(2)
    kx.options += f",archive={place}"
    kx.start()
    found = wait_for(lambda: folder(place, job), what=kx.said)
    assert sorted((found / name / "log").read_text() for name in ("main-0", "main-1")) == ["on", "one\ntwo\n"]
    assert f"{job.id}: log is damaged; kxfs archives the job without the damaged part" in kx.said()
    assert 'archive_error: ""' in kx.read(".kxfs/info")


def test_end_of_the_mount(make_kx, place):
    """Jobs that end because of an unmount are archived. If kxfs is killed before that, the next mount archives them."""
    kx = make_kx(options=f"archive={place}")
    job = kx.submit(app("echo runs; sleep 1000"))
    job.until_logged("runs\n")
    kx.end()
    assert (folder(place, job) / "state").read_text() == "CANCELLED\n", kx.said()
    kx.start()
    job = kx.submit(app("echo ran"))
    job.finish()
    kx.end(signal.SIGKILL)
    kx.start()
    wait_for(lambda: folder(place, job), what=kx.said)
    assert (folder(place, job) / "main-0/log").read_text() == "ran\n"


def test_ro(make_kx, place):
    """A read-only mount shows where the archive is, but writes nothing there."""
    kx = make_kx(options=f"archive={place},ro")
    assert os.readlink(kx / "archive") == str(place / "local")
    kx.end()
    assert not list(place.iterdir())


def test_removed_before(make_kx, place):
    """rm -r history/ID removes a job for ever, even if it is not archived yet."""
    kx = make_kx(options=f"archive={place}")
    (place / ".kxfs-archive").rename(place / "hidden")
    job = kx.submit(app("echo text"))
    job.finish()
    harness.remove(job.dir)
    harness.remove(job.old)
    wait_for(lambda: "archive_waiting: 0" in kx.read(".kxfs/info"), what=kx.said)


def test_does_not_answer(make_kx, place):
    """A hanging archive delays nothing. kxfs reports it, and archives the job when the archive answers again."""
    kx = make_kx(options=f"archive={place}", start=False)
    disk = Disk(kx, place)
    try:
        kx.start()
        disk.hang("mkdir", "local")
        with disk.still():
            job = kx.submit(app("echo first"))
            job.finish()
            wait_for(lambda: f'archive_error: "{place}: does not respond; check its disk or file server"' in kx.read(".kxfs/info"), what=kx.said)
            assert "kxfs_archive_failing 1" in kx.read(".kxfs/metrics")
            other = kx.submit(app("echo second"))
            other.finish()
            assert other.read("log") == "main/0 second\n" and sorted(kx.ls("jobs")) == sorted([job.id, other.id])
            disk.hang("mkdir", "kxfs-doctor")
            said = run([kx.binary, "doctor", "-o", f"archive={place},state={kx.base}/other", "local:"], check=False).stdout
            assert f"{place}: does not respond" in said
            disk.hang("mkdir", "local")
        disk.go_on()
        for one in job, other:
            wait_for(lambda one=one: folder(place, one), what=kx.said)
            assert (folder(place, one) / "log").read_bytes() == one.read("log", binary=True)
        wait_for(lambda: 'archive_error: ""' in kx.read(".kxfs/info"))
    finally:
        disk.close()


# --- Earlier bugs -----------------------------------------------------------------------------
# Bugs that were found by using a mount and that fit into no other file.


def test_a_job_of_thousands_of_replicas_is_accepted_soon(kx):
    """close() returns before all processes are started, because starting them takes longer than 30 s, the deadline of
    close()."""
    job = kx.submit(app("", roles=[sh_role("exit 0", num_replicas=6000)]))
    assert len(job.status()["roles"][0]["replicas"]) == 6000


def test_a_directory_read_from_its_start_again_is_read_anew(kx):
    fd = os.open(kx / "jobs", os.O_RDONLY)
    try:
        assert os.listdir(fd) == []
        job = kx.submit(app("true"))
        assert os.listdir(fd) == [job.id]  # Read through the same descriptor again, as rewinddir(3) does.
        job.cancel()
        assert os.listdir(fd) == []
    finally:
        os.close(fd)
