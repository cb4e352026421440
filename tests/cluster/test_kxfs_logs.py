# SPDX-License-Identifier: MIT
"""Output of real pods through the mount."""

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
from mounted import HOLD, World, app, manifest, role, running
from relay import Cuts

# --- While they run and after -----------------------------------------------------------------
# Output of real pods, read through the mount while they run and after.


def lines_of(job, name="log"):
    return job.read(name).splitlines()


def test_follow(kx, world):
    """A reader has a line while the program runs, and its end when that ends."""
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
    """Byte for byte: carriage returns, NUL, invalid UTF-8, a long line, no newline at the end."""
    script = ("printf 'a\\rb\\n\\000\\377 x\\n\\n'; head -c 100000 /dev/zero | tr '\\0' L; echo; "
              "printf 'no newline'; " + HOLD.replace("echo begin;", "").replace("echo end;", ""))
    job = kx.submit(app(script))
    world.release(running(job))
    job.finish()
    wanted = b"a\rb\n\0\xff x\n\n" + b"L" * 100000 + b"\nno newline"
    wait_for(lambda: len(job.log()) >= len(wanted), what="all of it")
    assert job.log() == wanted


def test_merged(kx, world):
    """All replicas in one file, each line with its replica's name; `follow` ends with the job."""
    job = kx.submit(app(roles=[role(HOLD, "leader"), role(HOLD, "worker", num_replicas=2)]))
    out = kx.base / "followed"
    reader = popen(["cat", str(job / "follow")], stdout=open(out, "wb"))
    names = ["leader-0", "worker-0", "worker-1"]
    for name in names:
        world.release(running(job, name))
    job.finish()
    assert reader.wait(timeout=60) == 0
    wanted = sorted(f"{name.replace('-', '/')} {word}" for name in names for word in ("begin", "end"))
    assert sorted(out.read_text().splitlines()) == wanted
    assert out.read_text() == job.read("log")
    for name in names:
        assert job.read("logs", f"{name}.log") == "begin\nend\n"


def test_attempts(kx, world):
    """Each attempt keeps its log, though Volcano deletes the pod."""
    job = kx.submit(app(HOLD, max_retries=2, retry_policy="APPLICATION"))
    first = running(job)
    wait_for(lambda: job.log() == b"begin\n", what="the first line")
    world.release(first, 9)
    wait_for(lambda: job.replica()["attempt"] == 1, what="the second attempt")
    world.release(running(job))
    job.finish()
    assert "log.0" in kx.ls("jobs", job.id, "main-0")
    wait_for(lambda: job.log() == b"begin\nend\n", what="the log of the second")
    assert job.log(name="log.0") == b"begin\nend\n"


def test_history(kx, world):
    """What was captured outlives the job, with what it printed on SIGTERM."""
    script = "trap 'echo bye; exit 0' TERM; echo hello; while :; do sleep 0.1; done"
    job = kx.submit(app(script))
    wait_for(lambda: job.log() == b"hello\n", what="the first line")
    run(["rm", "-r", str(job.dir)])
    wait_for(lambda: (job.old / "main-0/log").read_text() == "hello\nbye\n", what="its last words")
    assert (job.old / "state").read_text() == "CANCELLED\n" and job.id not in kx.ls("jobs")
    run(["rm", "-r", str(job.old)])
    assert job.id not in kx.history()


def test_deleted_by_others(kx, world):
    job = kx.submit(app(HOLD))
    wait_for(lambda: job.log() == b"begin\n", what="the first line")
    world.kubectl("delete", "jobs.batch.volcano.sh", job.id)
    wait_for(lambda: job.id in kx.history(), what="the job in the history")
    assert (job.old / "main-0/log").read_text() == "begin\n" and job.id not in kx.ls("jobs")


def test_not_started(kx):
    """Waiting for a container that has not started is no error."""
    job = kx.submit(app(HOLD, image="localhost:1/no/such:image"))
    wait_for(lambda: job.replica()["reason"] in ("ImagePullBackOff", "ErrImagePull"), what="the reason")
    assert job.log() == b"" and job.read("log") == ""


# --- Failures ---------------------------------------------------------------------------------
# Output of real pods through broken connections, restarts of the API server, the kubelet and kxfs, rotations,
# failures and retries: each log is, byte for byte, what the program wrote to a file of its own.
#
# The seed of what happens when is printed; `--seed N` has it again.

# An outage of the API server takes half a minute and more where the machine is busy. Whoever watched it looks again
# after a pause that grows with that, to a minute, and a new attempt needs several of them one after the other.
LIMIT = 400
wait_long = functools.partial(harness.wait_for, timeout=LIMIT)
REPLICAS = 3
HEAD = 40  # bytes that tell an attempt's output from that of others
# Attempt N of replica RANK writes numbered lines of any length and bytes, to /out/RANK.N too, until `stop.N` has
# its exit code; told to end, it still says so. Once for each line of `loud` it prints BURST bytes and more, "pause
# K", and then nothing until `go` has that line too. No line ends with \r\n, since containerd 1.6 loses that \r.
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

PIECE = re.compile(rb"([^\r\n]*(?:\r(?!\n)|\r?\n))")  # that has a prefix of its own in the merged log


class Run:
    """A job of PROGRAM, and what it has written. BURST bytes make the kubelet rotate a log, once."""

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
        """One replica, whose container is started again in its pod."""
        return manifest(restartPolicy="OnFailure", volumes=[{"name": "out", "hostPath": {"path": str(self.out)}}],
                        container={"command": ["sh", "-c", program], "env": [{"name": "RANK", "value": "main-0"}],
                                   "volumeMounts": [{"name": "out", "mountPath": "/out"}]})

    def wrote(self, replica, attempt):
        return (self.out / f"{replica}.{attempt}").read_bytes()

    def until_runs(self, attempt):
        wait_long(lambda: all((self.out / f"{name}.{attempt}").exists() for name in self.replicas),
                 what=f"attempt {attempt}")

    def log(self, replica="main-0", name="log"):
        """b"": an open has waited for 10 s for what is on its way, as when a kubelet that starts is slow to answer."""
        with contextlib.suppress(FileNotFoundError, TimeoutError):
            return self.job.log(replica, name)
        return b""

    def captured(self, name, attempt):
        """How many bytes of that attempt; before it has a log, `log` is the one of the attempt before."""
        log = self.log(name)
        return len(log) if log[:HEAD] == self.wrote(name, attempt)[:HEAD] else 0

    def until_captured(self, attempt):
        """All that has been written by now, and more."""
        self.until_runs(attempt)
        wait_long(lambda: all(len(self.wrote(name, attempt)) > HEAD for name in self.replicas), what="its lines")
        sizes = {name: len(self.wrote(name, attempt)) for name in self.replicas}
        wait_long(lambda: all(self.captured(name, attempt) > size for name, size in sizes.items()), what="its output",
                 step=0.1)

    def kept(self, name):
        """The kubelet's files of that name: 0.log; what it was before a rotation is 0.log.TIME."""
        return set((self.cluster.base / "pod-logs").glob(f"*_{self.job.id}-*/*/{name}"))

    def burst(self):
        """All of it is in the kubelet's files, and no more comes until `go`."""
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
        """Each log once. Nothing is printed just then, since it might show in no stream: the kubelet leaves the old
        file when it sees the new one, and containerd may still write to the old one. What kxfs has by now may come from
        a fetch of what there was; what comes after that is from a stream, which the kubelet has to know of."""
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
        """Log NAME of each replica is what that attempt wrote; GAPS: how many may be counted."""
        for replica in self.replicas:
            wanted = self.wrote(replica, attempt)
            with contextlib.suppress(AssertionError):
                wait_long(lambda: len(self.log(replica, name)) >= len(wanted), timeout=60)
            got = self.job.log(replica, name)
            at = same(got, wanted)
            assert got == wanted, (replica, name, at, len(got), len(wanted), got[at:at + 80], wanted[at:at + 80])
            assert re.search(rf"^gap: [{gaps}]$", self.job.read(replica, "status"), re.M), replica

    def check_merged(self, attempts):
        """It has every line of each replica once, those of an attempt in order."""
        wanted = {replica: [PIECE.findall(self.wrote(replica, attempt) + b"\n") for attempt in range(attempts)]
                  for replica in self.replicas}
        n = sum(map(len, sum(wanted.values(), [])))

        def merged():
            return re.findall(rb"(main/\d+) " + PIECE.pattern, self.job.read("log", binary=True))

        # It is made when the logs are there, by work that waits for the disk.
        with contextlib.suppress(AssertionError):
            wait_long(lambda: len(merged()) >= n, timeout=60, step=1)
        lines = merged()
        for replica in self.replicas:
            name = replica.replace("-", "/").encode()
            # After \r another replica's line begins with a newline.
            got = [re.sub(rb"\r\n\Z", rb"\r", piece) for of, piece in lines if of == name]
            assert sorted(got) == sorted(sum(wanted[replica], [])), replica
            for attempt in wanted[replica]:
                rest = iter(got)
                assert all(piece in rest for piece in attempt), replica


def same(a, b):
    """How many bytes at their beginning are the same."""
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
    """A cluster of its own, whose kubelet rotates no log before it has got much."""
    with Cluster(log_size="2Mi") as cluster:
        yield cluster


@pytest.mark.timeout(1800)
def test_chaos(roomy, make_kx, tmp_path, rand):
    """Rotations happen while all is captured, since nothing can be read of what is rotated away."""
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
        # A pod that is gone the moment it ends may have printed more than its stream had, for all that kxfs can know.
        run.check(0, "log.0", gaps="01")
        run.check(1, gaps="01")
        run.check_merged(2)


@pytest.mark.timeout(1800)
def test_in_place(cluster, mount, namespace, tmp_path, rand):
    """A container fails while kxfs does not run, or can't get through: its log is fetched as the previous one."""
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
    """What the kubelet has no more is a gap, and said; all that it has is there."""
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
        assert "may be lost" in kx.read(".kxfs/log")
