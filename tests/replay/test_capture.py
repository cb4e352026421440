# SPDX-License-Identifier: MIT
"""kxfs capture: it captures output and results of all jobs without a mount, as a process with hardly any rights."""

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

UID = 4242  # that no user database knows
# No /dev/fuse, all file systems read-only except that of the state directory, and no capability.
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


class Capture:
    """Captures with one state directory, one after the other, and mounts of it."""

    def __init__(self, kx):
        self.kx = kx
        self.proc = None
        self.ready = kx.state / "ready"
        config = kx.base / "config"
        shutil.copyfile(kx.more_env["KUBECONFIG"], config)
        self.give(UID, config)
        self.env = {**kx.env(), "KUBECONFIG": str(config), "STATE": str(kx.state)}

    def give(self, uid, *more):
        """Make UID the owner of all its files."""
        for path in (self.kx.base / "san", self.kx.state, *self.kx.state.rglob("*"), *more):
            os.chown(path, uid, uid)

    def start(self, **env):
        command = [self.kx.binary, "capture", "-o", f"state={self.kx.state}", "volcano:test"]
        with open(self.kx.messages, "ab") as err:
            self.proc = subprocess.Popen(["unshare", "-m", "sh", "-c", RESTRICTED, "sh", *command], cwd="/", stdout=err,
                                         stderr=err, stdin=subprocess.DEVNULL, env={**self.env, **env})

    def up(self):
        self.start()
        harness.wait_for(lambda: self.ready.exists() or self.proc.poll() is not None, what=self.kx.said)
        assert self.proc.poll() is None, self.kx.said()

    def end(self, sig=signal.SIGTERM, *statuses):
        proc, self.proc = self.proc, None
        proc.send_signal(sig)
        assert proc.wait(harness.LIMIT) in (statuses or (-sig if sig == signal.SIGKILL else 0,)), self.kx.said()

    def captured(self, job):
        """Return the log of its first replica, as on disk."""
        logs = [path for path in (harness.folder(self.kx.state, job) / "logs").glob("*") if path.stat().st_size]
        return logs[0].read_bytes() if logs else b""


def says(record, text):
    """True if the file RECORD exists and contains TEXT."""
    return record.exists() and text in record.read_text()


@pytest.fixture
def capture(make_mount, server, volcano):
    del volcano
    found = Capture(make_mount(server, start=False))
    yield found
    if found.proc:
        found.proc.kill()
        found.proc.wait(harness.LIMIT)


def test_output_outlives_its_pods(capture, server, volcano):
    """An existing job, and a later one; both are deleted with their pods while nothing is mounted. A later mount
    shows them. The server only received read requests."""
    text = b"".join(b"line %d\n" % i for i in range(20000))
    server.store.add(st.JOBS, watching.job("before"))
    address, file = capture.kx.base / "notify", capture.kx.state / "metrics"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(address))
        os.chmod(address, 0o777)
        s.settimeout(harness.LIMIT)
        capture.start(NOTIFY_SOCKET=str(address))
        got = ""
        while "READY=1" not in got:
            got = s.recv(4096).decode()
    assert f"STATUS=volcano:test is captured in {capture.kx.state}" in got
    assert capture.ready.exists()
    server.store.add(st.JOBS, watching.job("later"))
    for job in ("before", "later"):
        (pod,) = volcano.start(job)
        volcano.log(pod).append(text.decode())
        harness.wait_for(lambda: capture.captured(job) == text, what=f"the output of {job}")
    volcano.log(pod).append("the end\n")
    volcano.finish(pod, code=3)
    harness.wait_for(lambda: capture.captured("later").endswith(b"the end\n"))
    kept = {job: harness.record(capture.kx.state, job) for job in ("before", "later")}
    # The end of a pod can't be observed after the pod is deleted.
    harness.wait_for(lambda: says(kept["later"], '"exit_code":3'), what="the end of its pod")
    for job, record in kept.items():
        server.store.remove(st.JOBS, "test", job)
        harness.wait_for(lambda record=record: records.is_history(record), what=f"{job} in the history")
    metrics = harness.wait_for(lambda: file.exists() and file.read_text(), what="metrics")
    assert 'kxfs_jobs{state="RUNNING"} ' in metrics and "kxfs_captured_bytes_total " in metrics
    capture.end()
    assert not capture.ready.exists()
    assert {verb for verb in ("create", "delete", "patch", "update") if server.count(verb=verb)} == set()
    capture.give(0)
    kx = capture.kx.start()
    assert sorted(kx.history()) == ["before", "later"] and kx.ls("jobs") == []
    assert kx.read("history", "before", "main-0", "log", binary=True) == text
    assert kx.read("history", "later", "main-0", "log", binary=True) == text + b"the end\n"
    assert "exit_code: 3" in kx.read("history", "later", "status")


def test_ended_and_killed(capture, server, volcano):
    """Output between two runs, the first of which was ended or killed, is there once. STATE/ready exists only while
    a run is up."""
    server.store.add(st.JOBS, watching.job("theirs"))
    capture.up()
    (pod,) = volcano.start("theirs")
    want = b""
    for i, sig in enumerate((signal.SIGTERM, signal.SIGKILL, signal.SIGTERM)):
        want += b"".join(b"%d %d\n" % (i, n) for n in range(5000))
        volcano.log(pod).append(want.decode()[len(capture.captured("theirs")):])
        harness.wait_for(lambda: capture.captured("theirs") == want, what="what was printed")
        capture.end(sig)
        volcano.log(pod).append(f"between {i}\n")
        want += b"between %d\n" % i
        assert capture.ready.exists() == (sig == signal.SIGKILL)
        capture.up()
        harness.wait_for(lambda: capture.captured("theirs") == want, what="what was printed meanwhile")
    capture.end(signal.SIGKILL)
    server.away()
    capture.start()
    harness.wait_for(lambda: not capture.ready.exists(), what="the first one's word to go")
    # It was not up: it ends by itself, or by the signal if it did not handle that yet.
    capture.end(signal.SIGTERM, 1, -signal.SIGTERM)


def test_one_for_a_state_directory(capture):
    """A second capture is refused, and so is a mount."""
    capture.up()
    said = (f"{capture.kx.state}: in use by process {capture.proc.pid}, a kxfs capture: end that, or give another "
            "directory with -o state=DIR")
    first, capture.proc = capture.proc, None
    try:
        capture.start()
        assert capture.proc.wait(harness.LIMIT) == 1
    finally:
        capture.proc = first
    assert said in capture.kx.said()
    capture.end()
