# SPDX-License-Identifier: MIT
"""Output of many pods, of every kind, through every failure on its way: in the end each log is what its program
printed, byte for byte, and no gap is reported.

The failures are chosen from a seed, which is printed (`--seed N` repeats it). KXFS_CHAOS_SECONDS is how long
programs print, for longer runs than CI's."""

import os
import random
import signal
import time

import harness
import records
import replies
from faults import Fault

SECONDS = float(os.environ.get("KXFS_CHAOS_SECONDS", "12"))
PODS = 100
LONG = 70_000  # the longest line
SMALL = 60_000  # what a program prints whose clock is set: its log is always asked for from the start
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
        return rand.randbytes(rand.randrange(100))  # maybe not the end of a line
    if kind < 0.55:
        return b"\r 10%\r 20%\r"
    return rand.choice([b"\n", b"\xff\xfe\0\n", b"2026-11-21T09:08:40.123456789Z hello\n",
                        b"%d " % rand.randrange(10**9) + rand.randbytes(rand.randrange(200)).hex().encode() + b"\n"])


class Program:
    """The program of one pod: one run of its container, or two."""

    def __init__(self, pod, volcano, seed):
        self.number = number = int(pod.split("-")[-2])
        self.pod = pod
        self.volcano = volcano
        self.rand = random.Random(f"{seed} {number}")
        self.plain = number % 4 == 0  # prints numbered lines of text, which can be told from others'
        self.clock = number % 4 == 1  # its clock is set now and then
        self.old = number % 3 == 2  # of a node with an old kubelet
        self.count = 0
        self.begin(0)

    def begin(self, run):
        self.run = run
        self.log = self.volcano.log(self.pod, restart=run)
        self.log.old = self.old
        self.now = time.time_ns()

    def restart(self, captured):
        """The container fails and restarts. Only the previous run can be fetched: so this happens once, and not
        before some of it is CAPTURED: a request can't name a run, so a stream without a known line may belong to the
        next run, until kxfs gets that event."""
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
        """Remove everything except output that is not captured yet, and output about as old as what kxfs remembers
        after a crash."""
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
        """Return the captured part of the present run."""
        try:
            return (self.job / f"main-{program.number}" / "log").stat().st_size if program.run == 0 else 0
        except OSError:  # not yet, or no mount
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
        """Kill kxfs while it writes: the last write of some logs is torn."""
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
        """Wait until every log is what was printed, and check that no log ever was anything else."""
        for program in self.programs:
            for run in range(program.run + 1):
                name = "log" if run == program.run else f"log.{run}"
                data = self.volcano.log(program.pod, restart=run).data()

                def same(program=program, name=name, data=data):
                    try:
                        now = self.job.log(f"main-{program.number}", name)
                    except TimeoutError:  # it is on its way
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
    # The merged log has each line of each run, in the order of the run.
    merged = job.read("log", binary=True).split(b"\n")
    for program in chaos.programs:
        if program.plain:
            head = b"main/%d " % program.number
            data = b"".join(volcano.log(program.pod, restart=run).data() for run in range(program.run + 1))
            assert [line[len(head):] for line in merged if line.startswith(head)] == data.split(b"\n")[:-1]
