# SPDX-License-Identifier: MIT
"""A namespace with KXFS_MANY_JOBS jobs, in KXFS_MANY_ROUNDS rounds: while jobs of others come, end and go, and while the server forgets where
the watches were, so that all is listed anew, people list, read, submit, remove and forget. Each job is shown exactly once, with the
state that the server has, whatever else happens; no request takes longer than DEADLINE; and a second start shows the same.

What they do is chosen from a seed, which is printed (`--seed N`).
"""

import collections
import contextlib
import json
import os
import pathlib
import random
import re
import threading
import time

import harness
import pytest
import store as st
import watching
from fakes import make_pod, set_containers

JOBS = int(os.environ.get("KXFS_MANY_JOBS", "4000"))
ROUNDS = int(os.environ.get("KXFS_MANY_ROUNDS", "3"))
DEADLINE = 30  # seconds that a request may take, which is many times what it needs; a start may take LIMIT
MOVING = JOBS // 20  # jobs that come and go
# MiB that kxfs may need at most, and KiB more for each job: the 5 of tests/bench/README.md, and the same again for
# lists: a new list exists beside the shown jobs, and list.jsonl is a text of all.
MEMORY = 64, 10
STATES = {"Completed": "SUCCEEDED", "Failed": "FAILED", "Running": "RUNNING", "Pending": "PENDING", "Aborted": "CANCELLED"}
PODS = {"Completed": "Succeeded", "Failed": "Failed", "Running": "Running", "Pending": "Pending"}


@contextlib.contextmanager
def beside(step, seconds):
    """Repeat STEP, with pauses of so many SECONDS."""
    stop, wrong = threading.Event(), []

    def go():
        try:
            while not stop.wait(seconds):
                step()
        except (AssertionError, OSError) as e:
            wrong.append(e)

    thread = threading.Thread(target=go)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(harness.LIMIT)
    assert not wrong, wrong


class World:
    """The jobs of others: the state of each, by name. STILL ones do not change while the others do."""

    def __init__(self, store, rand):
        self.store, self.rand = store, rand
        self.still, self.moving = {}, {}
        self.ever = set()  # all that have ever moved
        self.count = 0
        for i in range(JOBS - MOVING):
            phase = rand.choices(list(STATES), (80, 10, 6, 2, 2))[0]
            self.make(f"job-{i:06}", phase)
            self.still[f"job-{i:06}"] = STATES[phase]
        for _ in range(MOVING):
            self.comes()

    def make(self, name, phase):
        job = self.store.add(st.JOBS, watching.job(name, phase=phase))
        if phase in PODS:
            self.store.add(st.PODS, watching.pod(job, "main", 0, phase=PODS[phase], code=int(phase == "Failed")))

    def comes(self):
        name = f"move-{self.count:06}"
        self.count += 1
        self.ever.add(name)
        self.make(name, "Running")
        self.moving[name] = "RUNNING"

    def ends(self, name):
        phase = self.rand.choice(["Completed", "Failed"])
        job = self.store.find(st.JOBS, "test", name)
        pod = watching.pod(job, "main", 0, phase=PODS[phase], code=int(phase == "Failed"))
        pod["metadata"]["uid"] = self.store.find(st.PODS, "test", f"{name}-main-0").uid
        self.store.put(st.PODS, pod)
        self.store.change(st.JOBS, "test", name, lambda tree: tree["status"].update(
            state={"phase": phase, "lastTransitionTime": st.now()}))
        self.moving[name] = STATES[phase]

    def goes(self, name):
        with contextlib.suppress(KeyError):
            del self.moving[name]
        self.store.remove(st.PODS, "test", f"{name}-main-0")
        self.store.remove(st.JOBS, "test", name)

    def step(self):
        name = self.rand.choice(list(self.moving))
        if len(self.moving) > MOVING:
            self.goes(name)
        elif self.moving[name] == "RUNNING":
            self.ends(name)
        else:
            self.comes()

    def goes_on(self):
        """Meanwhile others are created, end and are deleted, some hundred a second."""
        return beside(self.step, 0.005)


class People:
    def __init__(self, kx, server, world, rand):
        self.kx, self.server, self.world, self.rand = kx, server, world, rand
        self.own = {}  # our jobs: their states
        self.pods = {}  # and their pods
        self.slowest = collections.Counter()  # by request: seconds
        self.count = collections.Counter()
        self.watched = []  # jobs that nobody changes or removes

    def timed(self, what, call, *args):
        begin = time.monotonic()
        found = call(*args)
        took = time.monotonic() - begin
        assert took < DEADLINE, f"{what} took {took:.1f} s"
        self.slowest[what] = max(self.slowest[what], took)
        self.count[what] += 1
        return found

    def tool(self, what, *cmd):
        """Return the output of a program, which is ended if it takes too long."""
        return self.timed(what, lambda: harness.run([str(arg) for arg in cmd], timeout=DEADLINE).stdout)

    def right(self, shown, what):
        """SHOWN, pairs of name and state (or None), has each job once, and still ones in their state."""
        assert len(dict(shown)) == len(shown), f"{what} has a job twice"
        states = dict(shown)
        expected = self.world.still | self.own
        wrong = [(name, state, states.get(name, "nothing")) for name, state in expected.items() if states.get(name, "nothing") not in (state, None)]
        assert not wrong, f"{what}: {len(wrong)} wrong, as {wrong[:5]}"
        strange = [name for name in states if name not in expected and name not in self.world.ever]
        assert not strange, f"{what} has {strange[:5]}"
        return states

    def names(self):
        return self.right([(name, None) for name in self.tool("ls jobs/", "ls", self.kx / "jobs").split()], "jobs/")

    def listed(self):
        text = self.tool("cat list", "cat", self.kx / "list")
        return self.right([tuple(line.split()[:2]) for line in text[text.index("ID "):].splitlines()[1:]], "list")

    def listed_as_json(self):
        lines = map(json.loads, self.tool("cat list.jsonl", "cat", self.kx / "list.jsonl").splitlines())
        return self.right([(job["id"], job["state"]) for job in lines], "list.jsonl")

    def one_state(self):
        """Read an unchanging job, whatever else is requested."""
        name = self.rand.choice(self.watched)
        assert self.timed("one state beside it", self.kx.read, "jobs", name, "state").strip() == self.world.still.get(name), name

    def look(self):
        self.names()
        self.listed()
        self.listed_as_json()
        some = self.rand.sample(list(self.world.still), 200)
        said = self.tool("cat 200 states", "cat", *(self.kx / "jobs" / name / "state" for name in some)).split()
        assert said == [self.world.still[name] for name in some]
        failed = self.rand.sample([name for name, state in self.world.still.items() if state == "FAILED"], 20)
        for name in failed:
            assert "exit" in self.tool("cat why", "cat", self.kx / "jobs" / name / "why"), name
            assert json.loads(self.tool("cat status.json", "cat", self.kx / "jobs" / name / "status.json"))["state"] == "FAILED"

    def in_step(self):
        """Nothing changes any more: all readers agree with the server."""
        expected = self.world.still | self.world.moving | self.own
        harness.wait_for(lambda: self.listed() == expected, DEADLINE, "list to agree with the server", step=0.2)
        assert self.listed_as_json() == expected
        assert self.names().keys() == expected.keys()
        assert expected.keys() == {obj.name for obj in self.server.store.objects(st.JOBS)[0]}

    def submit(self):
        """A job that runs, prints, and ends."""
        job = self.timed("submit", self.kx.submit, harness.app("true"))
        made = self.server.store.find(st.JOBS, "test", job.id)
        self.server.store.change(st.JOBS, "test", job.id, lambda tree: tree.update(status={
            "minAvailable": 1, "state": {"phase": "Running", "lastTransitionTime": st.now()}}))
        tree = made.tree()
        (task,) = tree["spec"]["tasks"]
        pod = make_pod(made, tree, task, 0, True)
        set_containers(pod, "Running", lambda _: {"running": {"startedAt": st.now()}})
        pod = self.server.store.add(st.PODS, pod)
        self.server.api.log(pod, pod.tree()["spec"]["containers"][0]["name"]).append("hello\n")
        self.pods[job.id] = pod.name
        job.until("RUNNING", timeout=DEADLINE)
        self.own[job.id] = "RUNNING"
        job.until_logged("hello\n", timeout=DEADLINE)
        return job

    def forget(self, job):
        """Remove it, and from history/ too."""
        del self.own[job.id]
        self.tool("rm -r of one that runs", "rm", "-r", job.dir)
        self.server.store.remove(st.PODS, "test", self.pods.pop(job.id))
        assert self.server.store.find(st.JOBS, "test", job.id) is None
        assert (job.old / "main-0/log").read_text() == "hello\n" and (job.old / "state").read_text() == "CANCELLED\n"
        self.tool("rm -r in history/", "rm", "-r", job.old)
        assert self.kx.history() == []

    def remove(self):
        """Remove some finished jobs of others."""
        over = [name for name, state in self.world.still.items() if state in harness.FINAL]
        some = self.rand.sample(over, 20)
        for name in some:
            del self.world.still[name]
            self.world.ever.add(name)  # it is shown until it goes
        self.tool("rm -r of 20", "rm", "-r", *(self.kx / "jobs" / name for name in some))
        shown = self.names()
        assert not [name for name in some if name in shown or self.server.store.find(st.JOBS, "test", name)]
        for name in some:
            self.server.store.remove(st.PODS, "test", f"{name}-main-0")

    def relist(self):
        """The server no longer has the watches' versions; while everything is relisted, all jobs are shown."""
        def whole():
            return sum("continue" not in req.query and "fieldSelector" not in req.query
                       for req in self.server.seen(verb="list", resource="pods"))

        before = whole()
        self.server.expire()
        harness.wait_for(lambda: whole() > before, DEADLINE, "another list")
        while not self.server.open_streams(verb="watch", resource="pods") or not self.server.open_streams(verb="watch", resource="jobs"):
            self.look()
        self.server.requests.clear()

    def used(self):
        proc = pathlib.Path(f"/proc/{self.kx.pid}")
        status = (proc / "status").read_text()
        most, now, threads = (int(re.search(rf"^{what}:\s+(\d+)", status, re.M)[1]) for what in ("VmHWM", "VmRSS", "Threads"))
        return most, now, len(os.listdir(proc / "fd")), threads


def check_use(people, sanitized):
    """Check memory, without the part that a sanitizer holds back."""
    most, now, descriptors, threads = people.used()
    print(f"kxfs: {most >> 10} MiB of memory at most, {now >> 10} MiB now, {now / JOBS:.1f} KiB a job, {descriptors} descriptors, {threads} threads")
    if not sanitized:
        assert most <= MEMORY[0] * 1024 + MEMORY[1] * JOBS, f"{most} KiB for {JOBS} jobs"
    assert descriptors < 100 and threads < 20


@pytest.mark.timeout(ROUNDS * 600 + 1200)
def test_many(server, make_mount, sanitized, pytestconfig):
    seed = pytestconfig.getoption("--seed") or random.randrange(1 << 32)
    print(f"seed {seed}")
    rand = random.Random(seed)
    world = World(server.store, rand)
    kx = make_mount(server, "cancel=all", start=False)
    people = People(kx, server, world, rand)
    starts = []
    for _ in range(ROUNDS):
        begin = time.monotonic()
        kx.start()
        starts.append(time.monotonic() - begin)
        people.in_step()
        people.watched = [name for name, state in world.still.items() if state == "RUNNING"]
        with world.goes_on(), beside(people.one_state, 0.02):
            people.look()
            jobs = [people.submit() for _ in range(3)]
            people.remove()
            people.forget(jobs[0])
            people.relist()
        people.in_step()
        check_use(people, sanitized)
        assert kx.end() == 0
        with world.goes_on():  # and nobody looks
            time.sleep(1)
    times = ", ".join(f"{what} {took:.2f} s" for what, took in people.slowest.items())
    print(f"many: {JOBS} jobs, {ROUNDS} starts of at most {max(starts):.1f} s, {people.count.total()} requests, the slowest: {times}")
