# SPDX-License-Identifier: MIT
"""Output of real pods, read through the mount: during and after a run, and despite failures."""

import contextlib
import functools
import os
import random
import re
import signal
import time

import harness
import pytest
from cluster import Cluster
from harness import popen, run, wait_for
from mounted import HOLD, World, app, manifest, running
from relay import Cuts

# --- During and after a run --------------------------------------------------------------------


def test_follow(kx, world):
    """A reader gets each line while the program is running, and the end of file when it ends."""
    job = kx.submit(app(HOLD))
    out = kx.base / "followed"
    reader = popen(["cat", str(job / "main-0/follow")], stdout=open(out, "wb"))
    tail = popen(["tail", "-n", "+1", "-f", str(job / "main-0/log")], stdout=open(kx.base / "tail", "wb"))
    wait_for(lambda: out.read_text() == "begin\n", what="the first line")
    assert job.state() in ("PENDING", "RUNNING") and reader.poll() is None
    world.release(running(job))
    job.finish()
    assert reader.wait(timeout=60) == 0 and out.read_text() == "begin\nend\n"
    assert job.log() == b"begin\nend\n" and os.stat(job / "main-0/log").st_size == 10
    wait_for(lambda: (kx.base / "tail").read_text() == "begin\nend\n", what="tail -f")
    tail.kill()
    tail.wait()


def test_bytes(kx, world):
    """The log is exact: carriage returns, NUL, invalid UTF-8, a long line, no newline at the end.
    """
    script = ("printf 'a\\rb\\n\\000\\377 x\\n\\n'; head -c 100000 /dev/zero | tr '\\0' L; echo; "
              "printf 'no newline'; " + HOLD.replace("echo begin;", "").replace("echo end;", ""))
    job = kx.submit(app(script))
    world.release(running(job))
    job.finish()
    wanted = b"a\rb\n\0\xff x\n\n" + b"L" * 100000 + b"\nno newline"
    wait_for(lambda: len(job.log()) >= len(wanted), what="all of it")
    assert job.log() == wanted


def test_removed(kx, world):
    """rm -r removes the job and its pods from the cluster. Its output remains, including what the
    program printed on SIGTERM."""
    script = "trap 'echo bye; exit 0' TERM; echo hello; while :; do sleep 0.1; done"
    job = kx.submit(app(script))
    wait_for(lambda: job.log() == b"hello\n", what="the first line")
    run(["rm", "-r", str(job.dir)])
    assert job.id not in kx.ls("jobs") and job.id not in world.jobs()
    wait_for(lambda: not world.pods(job.id), what="its pods to go")
    wait_for(lambda: (job.old / "main-0/log").read_text() == "hello\nbye\n", what="its last words")
    assert (job.old / "state").read_text() == "CANCELLED\n"
    run(["rm", "-r", str(job.old)])
    assert job.id not in kx.history()


# --- Failures ---------------------------------------------------------------------------------
# Output of real pods despite broken connections, restarts of the API server, the kubelet and kxfs,
# log rotation, failures and retries. Each log must be exactly what the program wrote to a file of
# its own.
#
# The test prints its random seed; `--seed N` repeats a run.

# On a busy machine, an outage of the API server takes half a minute or more. After it, watches
# retry with a pause that grows with the outage, up to a minute. A new attempt needs several of them
# in sequence.
LIMIT = 400
wait_long = functools.partial(harness.wait_for, timeout=LIMIT)
REPLICAS = 3
HEAD = 40  # bytes that distinguish an attempt's output from that of others
# Attempt N of replica RANK prints numbered lines of random length and bytes, and also writes them
# to /out/RANK.N. It stops when `stop.N` contains its exit code; on SIGTERM it first prints one more
# line. For each line of `loud`, it prints at least BURST bytes and "pause K". Then it prints
# nothing until `go` has that line too. No line ends with \r\n, because containerd 1.6 loses that
# \r.
PROGRAM = r"""
n=0; while [ -e /out/$RANK.$n ]; do n=$((n+1)); done
trap '>/out/term.$RANK.$n' TERM
line() { i=$((i+1)); printf "$i "; head -c $1 /dev/urandom | tr '\n' '\r'; echo .; }
lines() {
	i=0; bursts=$(wc -l </out/loud)
	while [ ! -s /out/stop.$n ] && [ ! -e /out/term.$RANK.$n ]; do
		size=$((RANDOM % 150)); [ $((RANDOM % 60)) != 0 ] || size=$RANDOM
		line $size
		[ $(wc -l </out/loud) = $bursts ] || {
			bursts=$((bursts+1)); k=0
			while [ $k -lt BURST ]; do size=$((RANDOM * 2)); k=$((k+size)); line $size; done
			echo pause $bursts
			while [ $(wc -l </out/go) -lt $bursts ]; do sleep 0.05; done
		}
		sleep 0.0$((RANDOM % 10))
	done
	printf 'the end'
}
lines | tee /out/$RANK.$n &
wait; wait
[ ! -s /out/stop.$n ] || exit $(cat /out/stop.$n)
exit 143
"""

# each piece has its own prefix in the merged log
PIECE = re.compile(rb"([^\r\n]*(?:\r(?!\n)|\r?\n))")


class Run:
    """A job that runs PROGRAM, and what it has written. BURST bytes make the kubelet rotate a log
    once."""

    def __init__(self, kx, cluster, directory, burst, replicas=REPLICAS, in_place=False):
        self.kx = kx
        self.cluster = cluster
        self.bursts = 0
        self.out = directory / "out"
        self.out.mkdir()
        self.out.chmod(0o777)
        (self.out / "loud").touch()
        (self.out / "go").touch()
        self.replicas = [f"main-{k}" for k in range(replicas)]
        program = PROGRAM.replace("BURST", str(burst))
        self.job = kx.submit(self.in_place(program) if in_place else app(
            program, num_replicas=replicas, max_retries=3, retry_policy="APPLICATION",
            env={"RANK": "main-${replica_id}"},
            mounts=[{"type": "bind", "src_path": str(self.out), "dst_path": "/out"}]))

    def in_place(self, program):
        """Return a job of one replica, whose container is restarted in its pod."""
        return manifest(restartPolicy="OnFailure", volumes=[{"name": "out", "hostPath": {"path": str(self.out)}}],
                        container={"command": ["sh", "-c", program], "env": [{"name": "RANK", "value": "main-0"}],
                                   "volumeMounts": [{"name": "out", "mountPath": "/out"}]})

    def wrote(self, replica, attempt):
        return (self.out / f"{replica}.{attempt}").read_bytes()

    def until_runs(self, attempt):
        wait_long(lambda: all((self.out / f"{name}.{attempt}").exists() for name in self.replicas),
                 what=f"attempt {attempt}")

    def log(self, replica="main-0", name="log"):
        """Return a log. Return b"" if an open has waited 10 s for output, as when a starting
        kubelet is slow."""
        with contextlib.suppress(FileNotFoundError, TimeoutError):
            return self.job.log(replica, name)
        return b""

    def captured(self, name, attempt):
        """Return how many bytes of that attempt were captured. Before it has a log, `log` is that
        of the previous attempt."""
        log = self.log(name)
        return len(log) if log[:HEAD] == self.wrote(name, attempt)[:HEAD] else 0

    def until_captured(self, attempt):
        """Wait until everything written so far, and more, was captured."""
        self.until_runs(attempt)
        wait_long(lambda: all(len(self.wrote(name, attempt)) > HEAD for name in self.replicas), what="its lines")
        sizes = {name: len(self.wrote(name, attempt)) for name in self.replicas}
        wait_long(lambda: all(self.captured(name, attempt) > size for name, size in sizes.items()), what="its output",
                 step=0.1)

    def kept(self, name):
        """Return the kubelet's files of that name: 0.log is the current one, and 0.log.TIME was
        rotated."""
        return set((self.cluster.base / "pod-logs").glob(f"*_{self.job.id}-*/*/{name}"))

    def burst(self):
        """Print a burst. On return all of it is in the kubelet's files, and nothing more is printed
        until `go`."""
        self.bursts += 1
        with open(self.out / "loud", "a", encoding="ascii") as file:
            file.write("\n")
        end = f" F pause {self.bursts}\n".encode()
        wait_long(lambda: sum(path.read_bytes().endswith(end) for path in self.kept("0.log*")) >= len(self.replicas),
                 what="the burst", step=0.1)

    def go(self):
        with open(self.out / "go", "a", encoding="ascii") as file:
            file.write("\n")

    def rotate(self, attempt):
        """Rotate each log once. Nothing is printed meanwhile, because no stream might show it: the
        kubelet leaves the old file when it sees the new one, and containerd may still write to the
        old one. The output captured so far may come from a single fetch. Later output comes from a
        stream, which the kubelet must have opened."""
        self.until_captured(attempt)
        before = self.kept("0.log.*")
        kubelet = self.cluster.node.kubelet
        kubelet.kill(signal.SIGSTOP)
        try:
            self.burst()
        finally:
            kubelet.kill(signal.SIGCONT)
            kubelet.proc.send_signal(signal.SIGCONT)  # nsenter stops with its child
        wait_long(lambda: len({path.parent for path in self.kept("0.log.*") - before}) == len(self.replicas),
                 what="the kubelet to rotate", step=0.1)
        self.go()
        self.until_captured(attempt)

    def stop(self, attempt, code):
        (self.out / f"stop.{attempt}").write_text(f"{code}\n")

    def check(self, attempt, name="log", gaps="0"):
        """Assert that log NAME of each replica is what that attempt wrote. GAPS lists the allowed
        numbers of gaps."""
        for replica in self.replicas:
            wanted = self.wrote(replica, attempt)
            with contextlib.suppress(AssertionError):
                wait_long(lambda: len(self.log(replica, name)) >= len(wanted), timeout=60)
            got = self.job.log(replica, name)
            at = same(got, wanted)
            assert got == wanted, (replica, name, at, len(got), len(wanted), got[at:at + 80], wanted[at:at + 80])
            assert re.search(rf"^gap: [{gaps}]$", self.job.read(replica, "status"), re.M), replica

    def check_merged(self, attempts):
        """Assert that the merged log contains every line of each replica once, and those of an
        attempt in order."""
        wanted = {replica: [PIECE.findall(self.wrote(replica, attempt) + b"\n") for attempt in range(attempts)]
                  for replica in self.replicas}
        n = sum(map(len, sum(wanted.values(), [])))

        def merged():
            return re.findall(rb"(main/\d+) " + PIECE.pattern, self.job.read("log", binary=True))

        # The merged log is made after the logs, by work that waits for the disk.
        with contextlib.suppress(AssertionError):
            wait_long(lambda: len(merged()) >= n, timeout=60, step=1)
        lines = merged()
        for replica in self.replicas:
            name = replica.replace("-", "/").encode()
            # After \r, a line of another replica is preceded by an inserted newline.
            got = [re.sub(rb"\r\n\Z", rb"\r", piece) for of, piece in lines if of == name]
            assert sorted(got) == sorted(sum(wanted[replica], [])), replica
            for attempt in wanted[replica]:
                rest = iter(got)
                assert all(piece in rest for piece in attempt), replica


def same(a, b):
    """Return the length of the common prefix."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[:middle] == b[:middle] else (low, middle - 1)
    return low


@pytest.fixture
def rand(pytestconfig):
    seed = pytestconfig.getoption("--seed") or random.randrange(1 << 32)
    print("seed", seed)
    return random.Random(seed)


@pytest.fixture
def roomy():
    """Yield a separate cluster, whose kubelet rotates logs only when they are large."""
    with Cluster(log_size="2Mi") as cluster:
        yield cluster


@pytest.mark.timeout(1800)
def test_chaos(roomy, make_kx, tmp_path, rand):
    """Everything fails at random. Rotations happen only while everything is captured, because what
    is rotated away can't be read."""
    world = World(roomy, "default")
    wait_long(lambda: world.kubectl("auth", "can-i", "list", "pods", check=False,
                                   kubeconfig=roomy.kubeconfig("token")).stdout == "yes\n",
             what="the user's rights")
    with Cuts(roomy.kubeconfig("token"), tmp_path) as cuts:
        kx = make_kx("queue=default", source="volcano:default", env={"KUBECONFIG": str(cuts.config)})
        run = Run(kx, roomy, tmp_path, burst=2200000)

        def cut(_attempt):
            for _ in range(6):
                time.sleep(rand.random() * 0.7)
                cuts.cut()

        def restart_server(_attempt):
            roomy.parts["apiserver"].stop()
            time.sleep(rand.random())
            roomy.parts["apiserver"].start()
            roomy.wait_apiserver()

        def restart_kubelet(_attempt):
            roomy.node.kubelet.stop()
            time.sleep(rand.random())
            roomy.node.kubelet.start()

        def kill(_attempt):
            kx.end(signal.SIGKILL)
            time.sleep(rand.random())
            kx.start()

        faults = [cut, cut, kill, kill, restart_server, restart_kubelet]
        rand.shuffle(faults)
        for attempt in range(2):
            todo = faults[attempt::2]
            todo.insert(rand.randrange(len(todo)), run.rotate)
            run.until_captured(attempt)
            for fault in todo:
                print(f"{time.monotonic():.0f} {fault.__name__}")
                fault(attempt)
                run.until_captured(attempt)
            run.stop(attempt, [7, 0][attempt])
        run.job.finish(timeout=LIMIT)
        # If a pod disappears as soon as it ends, kxfs can't know whether it printed more than the
        # stream delivered.
        run.check(0, "log.0", gaps="01")
        run.check(1, gaps="01")
        run.check_merged(2)


@pytest.mark.timeout(1800)
def test_in_place(cluster, mount, namespace, tmp_path, rand):
    """A container fails while kxfs is not running, or has no connection. Its log is fetched as the
    previous one."""
    with Cuts(cluster.kubeconfig("token"), tmp_path) as cuts:
        kx = mount(kubeconfig=cuts.config, namespace=namespace)
        run = Run(kx, cluster, tmp_path, burst=0, replicas=1, in_place=True)
        run.until_captured(0)
        kx.end(signal.SIGKILL)
        time.sleep(rand.random())
        run.stop(0, 7)
        run.until_runs(1)
        kx.start()
        run.until_captured(1)
        cuts.close()
        time.sleep(rand.random())
        run.stop(1, 8)
        run.until_runs(2)
        cuts.open()
        run.until_captured(2)
        run.stop(2, 0)
        run.job.finish(timeout=LIMIT)
        run.check(0, "log.0")
        run.check(1, "log.1")
        run.check(2)
        run.check_merged(3)


@pytest.mark.timeout(1800)
def test_rotated_away(cluster, mount, namespace, tmp_path):
    """What the kubelet has removed is reported as a gap. Everything that it still has is there."""
    with Cuts(cluster.kubeconfig("token"), tmp_path) as cuts:
        kx = mount(kubeconfig=cuts.config, namespace=namespace)
        run = Run(kx, cluster, tmp_path, burst=300000, replicas=1)
        run.until_captured(0)
        cuts.close()
        run.burst()
        wait_long(lambda: run.kept("0.log.*"), what="the kubelet to rotate")
        run.go()
        cuts.open()
        wait_long(lambda: re.search(r"^gap: [1-9]", run.job.read("main-0", "status"), re.M), what="the gap")
        run.stop(0, 0)
        run.job.finish(timeout=LIMIT)
        wait_long(lambda: run.log().endswith(b"the end"), what="its end")
        log, wrote = run.log(), run.wrote("main-0", 0)
        begin, end = same(log, wrote), same(log[::-1], wrote[::-1])
        assert len(log) < len(wrote) and begin + end >= len(log), (begin, end, len(log), len(wrote))
        assert "may have lost output" in kx.read(".kxfs/log")
