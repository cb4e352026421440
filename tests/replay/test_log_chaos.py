# SPDX-License-Identifier: MIT
"""Output of pods in spite of failures, restarts, late events and slow lists. The simulator
(tests/sim/reader.c) checks the same in many more histories; these run with real sockets, files and
time."""

import os
import random
import signal
import time

import harness
import pytest
import records
import replies
from faults import Fault

# --- Failures of streams ----------------------------------------------------------------------
# Output of many pods, of all sorts, while all requests and streams may fail. In the end each log has exactly the bytes
# that its program printed, and no gap is reported.
#
# A seed, which is printed, determines the failures (`--seed N` repeats them). KXFS_CHAOS_SECONDS is how long the
# programs print.

SECONDS = float(os.environ.get("KXFS_CHAOS_SECONDS", "12"))
PODS = 100
LONG = 70_000  # bytes of the longest line
SMALL = 60_000  # the most output of a program whose clock jumps, so that kxfs always reads its whole log
MESSAGE = b"unable to retrieve container logs for containerd://0123456789abcdef"


def any_line(rand):
    kind = rand.random()
    if kind < 0.3:
        return b"the same line\n"
    if kind < 0.33:
        return rand.randbytes(rand.randrange(LONG)).replace(b"\n", b"\0") + b"\n"
    if kind < 0.36:
        return b"x" * (16384 * rand.randrange(1, 4)) + b"\n"
    if kind < 0.5:
        return rand.randbytes(rand.randrange(100))  # the line may lack its newline
    if kind < 0.55:
        return b"\r 10%\r 20%\r"
    return rand.choice([b"\n", b"\xff\xfe\0\n", b"2026-11-21T09:08:40.123456789Z hello\n",
                        b"%d " % rand.randrange(10**9) + rand.randbytes(rand.randrange(200)).hex().encode() + b"\n"])


class Program:
    """The program of one pod, with one or two runs of its container."""

    def __init__(self, pod, volcano, seed):
        self.number = number = int(pod.split("-")[-2])
        self.pod = pod
        self.volcano = volcano
        self.rand = random.Random(f"{seed} {number}")
        # True if the program prints numbered lines of text, which the test can distinguish from lines of other programs.
        self.plain = number % 4 == 0
        self.clock = number % 4 == 1  # its clock is set sometimes
        self.old = number % 3 == 2  # its node has an old kubelet
        self.count = 0
        self.begin(0)

    def begin(self, run):
        self.run = run
        self.log = self.volcano.log(self.pod, restart=run)
        self.log.old = self.old
        self.now = time.time_ns()

    def restart(self, captured):
        """Let the container fail and restart, once, because only the previous run can be fetched.
        Do this only after some of the first run is CAPTURED. A request can't name a run, so until
        kxfs knows of the restart, it recognizes the first run by a line that it knows."""
        if self.run == 0 and captured:
            self.volcano.restart_container(self.pod)
            self.begin(1)

    def print(self):
        rand = self.rand
        if self.clock and sum(len(data) for _, data in self.log.entries) > SMALL - LONG // 4:
            return
        self.now = max(self.now, time.time_ns()) if rand.random() < 0.5 else self.now
        if self.clock and rand.random() < 0.05:
            self.now -= rand.randrange(5 * 10**9)
        for _ in range(rand.randrange(8)):
            if self.plain:
                line = b"%d %s\n" % (self.count, b"y" * rand.randrange(300))
            else:
                line = any_line(rand)
            if self.clock:
                line = line[-LONG // 4:]
            self.log.append(line, at=self.now)
            self.count += 1
            self.now += rand.choice([0, 0, 1, rand.randrange(10**7)])

    def rotate(self, captured):
        """Rotate the log. Keep output that is not captured yet, and output of the last seconds, which kxfs may fetch
        again after a crash."""
        if self.clock:
            return
        with self.log.lock:
            at, keep = 0, len(self.log.entries)
            for when, data in self.log.entries:
                at += len(data)
                if at > captured or when > time.time_ns() - 7 * 10**9:
                    break
                keep -= 1
        self.log.rotate(keep + 60)


class Chaos:
    def __init__(self, kx, server, volcano, seed):
        self.kx, self.server, self.volcano = kx, server, volcano
        self.rand = random.Random(seed)
        self.job = kx.submit(harness.app("true", num_replicas=PODS))
        self.programs = [Program(pod, volcano, seed) for pod in volcano.start(self.job.id)]
        self.cuts = 0
        server.faults.at_random(seed, 0.9, [
            lambda r: Fault("cut", r.randrange(1, 60000)), lambda r: Fault("cut", r.randrange(1, 900)),
            lambda r: Fault("cut", r.randrange(1, 9000)), lambda r: Fault("close", r.randrange(1, 9000)),
            lambda r: Fault("close", r.randrange(1, 60000)), lambda r: Fault("slow", r.randrange(1000, 9000), 0.01),
            lambda r: Fault("reset"), lambda r: Fault("junk"), lambda r: Fault("reply", reply=replies.too_many(1)),
            lambda r: Fault("reply", reply=replies.internal()),
            lambda r: Fault("reply", reply=replies.Reply(200, MESSAGE, "text/plain"))], subresource="log")

    def size(self, program):
        """Return the number of bytes that kxfs has captured of the current run."""
        try:
            return (self.job / f"main-{program.number}" / "log").stat().st_size if program.run == 0 else 0
        except OSError:  # the log does not exist yet, or there is no mount
            return 0

    def step(self):
        rand = self.rand
        for program in rand.sample(self.programs, 20):
            program.print()
        for program in rand.sample(self.programs, 3):
            self.cuts += self.server.end_streams(rand.choice(["end", "close", "reset"]), subresource="log",
                                                 name=program.pod)
        if rand.random() < 0.2:
            program = rand.choice(self.programs)
            if program.run == 0:
                program.rotate(self.size(program))

    def kill(self):
        """Kill kxfs, and tear some logs as if the kill had interrupted their last writes."""
        self.kx.end(signal.SIGKILL)
        replicas = records.snapshot_of(records.of(self.kx, self.job.id)).get("replicas", [])
        whole = [log["key"] for replica in replicas for log in replica["logs"] if log["complete"]]
        logs = sorted(path for path in (self.kx.folder(self.job.id) / "logs").glob("*")
                      if path.name not in whole)
        for path in self.rand.sample(logs, min(len(logs), 20)):
            os.truncate(path, max(0, path.stat().st_size - self.rand.randrange(300)))
        self.step()
        self.kx.start()

    def away(self):
        self.server.away(self.rand.choice(["reset", "close"]))
        self.step()
        self.server.back()

    def run(self):
        events = [self.away, self.kill, self.away, self.kill,
                  *(lambda p=program: p.restart(self.size(p)) for program in self.programs if program.number % 2)]
        self.rand.shuffle(events)
        begin = time.monotonic()
        share = 0.0
        while share < 1:
            self.step()
            while events and share > 1 - len(events) / (PODS / 2 + 4):
                events.pop()()
            time.sleep(0.01)
            share = (time.monotonic() - begin) / SECONDS
        self.cuts += sum(1 for req in self.server.seen(subresource="log") if req.fault)
        self.server.faults.clear()

    def whole(self):
        """Wait until each log has everything that was printed. Check that no log ever has other bytes."""
        for program in self.programs:
            for run in range(program.run + 1):
                name = "log" if run == program.run else f"log.{run}"
                data = self.volcano.log(program.pod, restart=run).data()

                def same(program=program, name=name, data=data):
                    try:
                        now = self.job.log(f"main-{program.number}", name)
                    except TimeoutError:  # the output has not arrived yet
                        return False
                    at = next((i for i, (a, b) in enumerate(zip(now, data)) if a != b), min(len(now), len(data)))
                    assert at == len(now), f"{program.__dict__}: {name} differs at {at} of {len(data)}"
                    return now == data

                harness.wait_for(same, what=f"{name} of main-{program.number}")
            assert "\ngap: 0\n" in self.job.read(f"main-{program.number}", "status"), program.__dict__


def test_chaos(kx, server, volcano, pytestconfig):
    seed = pytestconfig.getoption("--seed") or random.randrange(1 << 32)
    chaos = Chaos(kx, server, volcano, seed)
    chaos.run()
    for program in chaos.programs:
        volcano.finish(program.pod)
    job = chaos.job
    job.finish()
    chaos.whole()
    print(f"{chaos.cuts} streams were cut")
    # The merged log has all lines of each run, and each run's lines are in order.
    merged = job.read("log", binary=True).split(b"\n")
    for program in chaos.programs:
        if program.plain:
            head = b"main/%d " % program.number
            data = b"".join(volcano.log(program.pod, restart=run).data() for run in range(program.run + 1))
            assert [line[len(head):] for line in merged if line.startswith(head)] == data.split(b"\n")[:-1]


# --- Runs that follow each other fast ---------------------------------------------------------
# Runs of a container, and pods of the same name, that follow each other faster than their events arrive. No line of a
# run appears in the log of another run.

LOGS = {"resource": "pods", "subresource": "log"}


@pytest.fixture
def job(kx, volcano):
    """Return a job with one replica, whose container restarts when it fails."""
    job = kx.submit(harness.app("true", retry_policy="REPLICA", max_retries=3))
    (pod,) = volcano.pods(job.id)
    volcano._edit_pods([pod], "test", lambda tree: tree["spec"].update(restartPolicy="OnFailure"))
    volcano.run(pod)
    return job


def print_run(volcano, job, run):
    volcano.log(volcano.pods(job.id)[0], restart=run).append(f"run {run}\n")


def logs_of(job):
    return {name: job.log(name=name) for name in os.listdir(job / "main-0") if name.startswith("log")}


def asked_which_run(server):
    return sum(bool(req.fields) for req in server.seen(resource="pods", verb="list", subresource=""))


def test_restarts_while_away(server, volcano, job):
    """The connection breaks, and the container is restarted twice. When the server is reachable again, the list of
    pods takes some seconds, as in a large namespace. Meanwhile, requests for the log of run 1 return the log of run
    2 or 3."""
    pod = volcano.pods(job.id)[0]
    volcano.restart_container(pod)
    print_run(volcano, job, 1)
    job.until_logged("run 1\n")
    server.away()
    for run in (2, 3):
        volcano.restart_container(pod)
        print_run(volcano, job, run)
    server.expire()
    server.faults.add("slow", times=100, amount=40, delay=0.2, verb="list", resource="pods", fields="")
    server.back()
    job.until_logged("run 3\n")
    harness.wait_for(lambda: logs_of(job).get("log.2") == b"run 2\n", what="the run before the last one")
    assert logs_of(job) == {"log.0": b"", "log.1": b"run 1\n", "log.2": b"run 2\n", "log": b"run 3\n"}
    assert job.gap() == 1


@pytest.mark.parametrize("code", [200, 500])
def test_short_runs(server, volcano, job, code):
    """Run 1 prints within its first second and fails while the server is unreachable. When the server is back, run 1
    is the run before the newest. With CODE 500, its log can't be fetched at first."""
    pod = volcano.pods(job.id)[0]
    print_run(volcano, job, 0)
    job.until_logged("run 0\n")
    refused = server.faults.add("reply", times=10000, reply=replies.internal(), subresource="log")
    server.end_streams("reset", subresource="log")
    volcano.restart_container(pod)
    harness.wait_for(lambda: "log.0" in os.listdir(job / "main-0"), what="the news of run 1")
    print_run(volcano, job, 1)
    server.hold(resource="pods")
    volcano.restart_container(pod)
    print_run(volcano, job, 2)
    if code == 500:
        server.faults.add("reply", times=3, reply=replies.internal(), subresource="log", previous=True)
    asked = asked_which_run(server)
    server.faults.clear(refused)
    harness.wait_for(lambda: asked_which_run(server) > asked, what="the run to be asked for")
    time.sleep(1)
    server.hold(False, resource="pods")
    job.until_logged("run 2\n")
    harness.wait_for(lambda: logs_of(job).get("log.1") == b"run 1\n", what="run 1")
    assert logs_of(job) == {"log.0": b"run 0\n", "log.1": b"run 1\n", "log": b"run 2\n"}


def test_pod_that_printed_nothing(kx, server, volcano):
    """A pod has printed nothing before another pod takes its name, and the watch is late. Requests for the first
    pod's log return output of the second, which must not appear as the first one's."""
    job = kx.submit(harness.app("true", max_retries=1))
    (pod,) = volcano.start(job.id)
    harness.wait_for(lambda: server.open_streams(**LOGS), what="the stream")
    server.hold(resource="pods")
    volcano.finish(pod, 3)
    volcano.start(job.id)
    volcano.log(pod).append("second\n")
    harness.wait_for(lambda: asked_which_run(server), what="the pod to be asked for")
    time.sleep(1)
    server.hold(False, resource="pods")
    job.until_logged("second\n")
    assert job.log(name="log.0") == b""
