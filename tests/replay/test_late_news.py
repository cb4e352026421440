# SPDX-License-Identifier: MIT
"""Logs of containers that are restarted, and of pods that are recreated with the same name, while events are late,
lists slow, connections cut, versions too old and requests refused: no line is in the log of another run, none is twice
in a log or in the merged one, and a missing line is reported as a gap.

The events are chosen from a seed, which is printed (`--seed N` repeats it). KXFS_CHAOS_SECONDS is how long it runs,
for longer runs than CI's."""

import os
import random
import re
import time
import uuid

import harness
import replies
import store as st
from faults import Fault

SECONDS = float(os.environ.get("KXFS_CHAOS_SECONDS", "12"))
PODS = 6
LINE = re.compile(rb"main-(\d) pod (\S+) run (\d+) line (\d+)\n")


class Program:
    """The programs of pods with one name, one after the other. Each line contains its origin."""

    def __init__(self, number, name, server, volcano, rand):
        self.number, self.name, self.server, self.volcano, self.rand = number, name, server, volcano, rand
        self.printed = {}  # (uid, run): lines
        self.again(0)

    def again(self, run):
        """A run begins."""
        self.uid = self.server.store.find(st.PODS, "test", self.name).uid
        self.run = run
        self.log = self.volcano.log(self.name, restart=run)
        self.printed[self.uid, run] = 0

    def step(self):
        what = self.rand.random()
        if what < 0.6:
            for _ in range(self.rand.randrange(1, 6)):
                count = self.printed[self.uid, self.run]
                self.log.append(b"main-%d pod %s run %d line %d\n" % (self.number, self.uid.encode(), self.run, count))
                self.printed[self.uid, self.run] += 1
        elif what < 0.64 and self.run < 6:
            self.volcano.restart_container(self.name)
            self.again(self.run + 1)
        elif what < 0.65:
            self.replace()

    def replace(self):
        """Another pod gets the name, and runs immediately."""
        tree = self.server.store.find(st.PODS, "test", self.name).tree()
        self.log.end()
        self.server.store.remove(st.PODS, "test", self.name)
        tree["metadata"].pop("resourceVersion")
        tree["metadata"]["uid"] = str(uuid.uuid4())
        tree["metadata"]["creationTimestamp"] = st.now()
        (status,) = tree["status"]["containerStatuses"]
        status.update(restartCount=0, state={"running": {"startedAt": st.now()}})
        status.pop("lastState", None)
        self.server.store.add(st.PODS, tree)
        self.again(0)


class Weather:
    """Delays and failures."""

    def __init__(self, server, rand, seed):
        self.server, self.rand = server, rand
        self.late = 0.0  # until then the watch of pods tells nothing
        server.faults.at_random(seed, 0.3, [
            lambda r: Fault("cut", r.randrange(1, 900)), lambda r: Fault("close", r.randrange(1, 900)),
            lambda r: Fault("reset"), lambda r: Fault("reply", reply=replies.too_many(1)),
            lambda r: Fault("reply", reply=replies.internal())], subresource="log")

    def step(self):
        rand, server, now = self.rand, self.server, time.monotonic()
        if self.late:
            server.hold(self.late > now, resource="pods")  # also what has begun since
            self.late = self.late if self.late > now else 0.0
        elif rand.random() < 0.02:
            self.late = now + rand.uniform(0, 10)
        if rand.random() < 0.1:
            server.end_streams(rand.choice(["end", "close", "reset"]), subresource="log")
        if rand.random() < 0.01:
            server.expire()
        if rand.random() < 0.01:
            server.faults.add("slow", amount=400, delay=rand.uniform(0, 0.4), verb="list", resource="pods", fields="")
            server.expire(resource="pods")
        if rand.random() < 0.005:
            server.away(rand.choice(["reset", "close"]))
            time.sleep(rand.uniform(0, 1.5))
            server.back()

    def clear(self):
        self.server.faults.clear()
        self.server.hold(False, resource="pods")


def check_log(data, where):
    """Check that these are the lines of one run, in order, none twice, the last one perhaps incomplete; return the
    run and their number."""
    whose = {match.groups()[:3] for match in LINE.finditer(data)}
    whole = b"".join(match[0] for match in LINE.finditer(data))
    assert data.startswith(whole) and b"\n" not in data[len(whole):], f"{where}: no whole lines"
    assert len(whose) == 1, f"{where}: of {len(whose)} runs"
    lines = [int(match[4]) for match in LINE.finditer(data)]
    assert lines == sorted(set(lines)), f"{where}: lines twice, or out of order"
    (_, uid, run), = whose
    return (uid.decode(), int(run)), len(lines)


def test_late_news(server, volcano, make_mount, pytestconfig):
    seed = pytestconfig.getoption("--seed") or random.randrange(1 << 32)
    rand = random.Random(seed)
    kx = make_mount(server)
    job = kx.submit(harness.app("true", num_replicas=PODS, retry_policy="REPLICA", max_retries=100))
    names = volcano.pods(job.id)
    volcano._edit_pods(names, "test", lambda tree: tree["spec"].update(restartPolicy="OnFailure"))
    volcano.start(job.id)
    programs = [Program(i, name, server, volcano, rand) for i, name in enumerate(names)]
    weather = Weather(server, rand, seed)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        weather.step()
        for program in programs:
            program.step()
        time.sleep(0.03)
    weather.clear()
    for program in programs:
        program.log.append(b"main-%d pod %s run %d line %d\n" % (
            program.number, program.uid.encode(), program.run, program.printed[program.uid, program.run]))
        program.printed[program.uid, program.run] += 1
        last = b"run %d line %d\n" % (program.run, program.printed[program.uid, program.run] - 1)
        harness.wait_for(lambda p=program, last=last: job.log(f"main-{p.number}").endswith(last), what="the last line")
    volcano.finish_all(names)
    job.finish()
    told = found = 0
    for program in programs:
        replica = f"main-{program.number}"
        seen = {}
        for name in os.listdir(job / replica):
            if re.fullmatch(r"log(\.\d+)?", name) and LINE.search(data := job.log(replica, name)):
                run, n = check_log(data, f"{replica}/{name}")
                assert run not in seen, f"{replica}: {run} stands in two logs"
                assert run in program.printed, f"{replica}/{name}: of another's {run}"
                seen[run] = n
        # If a pod was deleted before any event about it, or about its later runs, that is unknown.
        missing = [(uid, run) for (uid, run), n in program.printed.items()
                   if n > seen.get((uid, run), 0) and any(uid == known[0] and run <= known[1] for known in seen)]
        gap = job.gap(replica)
        assert gap or not missing, f"{replica}: {missing} is missing, and no gap is reported"
        told += gap
        found += len(seen)
    merged = re.findall(rb"^main/\d (main-\d pod .* line \d+)$", job.read("log", binary=True), re.M)
    assert len(merged) == len(set(merged)), "lines stand twice in the merged log"
    print(f"{found} of {sum(len(p.printed) for p in programs)} runs, {told} gaps")
