# SPDX-License-Identifier: MIT
"""Mounts that run for long, and mounts with many jobs."""

import collections
import contextlib
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import threading
import time

import harness
import pytest
import replies
import store as st
import watching
from faults import Fault

# --- A day ------------------------------------------------------------------------------------
# A mount of a cluster and a mount of this machine are in use for KXFS_DAY_SECONDS seconds. In each
# shift, users submit jobs that end in all ways (WAYS), follow and read them, and remove them, while
# watches and log streams are cut. Each document is launched once, each log is complete, and neither
# mount uses more and more resources.
#
# A seed, which is printed, determines what users do (`--seed N`). At the end of a shift a mount has
# nothing to show, and must use no more than at the end of an earlier shift:
#
# - In the second half of the time, the open files and the files of STATE at the ends of shifts are at most those of the
# first half. Each forgotten file would be one more.
# - The connections and threads at the ends of shifts are at most the maximum of the whole first half, because kxfs
# keeps some of them for later.
# - The memory is in the second half at most a tenth plus MORE_MEMORY above its maximum in the first
# half. It depends on what users do at the same time, and malloc keeps some freed memory. An hour
# has thousands of jobs, so a leak of one KiB per job would be noticed.

SECONDS = float(os.environ.get("KXFS_DAY_SECONDS", "40"))
WAYS = ("succeeds", "fails", "held", "held and removed", "suspended", "removed")  # what happens to a job
NAMES = [f"work-{i}.yaml" for i in range(12)]  # a new document replaces an older one
COMMANDS = ["ls -lR . > /dev/null", "cat jobs/*/state jobs/*/status jobs/*/why list list.jsonl > /dev/null",
            "grep -rl 'line 1$' jobs history > /dev/null", "cat .kxfs/info .kxfs/metrics .kxfs/log > /dev/null",
            "find . -name state | xargs cat > /dev/null", "tar c jobs history submit > /dev/null"]
MORE_MEMORY = 2048  # KiB
COUNTED = ("KiB of memory", "open files", "connections", "threads", "files of STATE")
EXACT = (1, 4)  # indexes in COUNTED of values that must not grow at all
THREADS = 3  # the index in COUNTED of the threads
# The main thread, the I/O thread, the FUSE thread, the thread of parked requests, and four of the pool; there are more
# only while a disk hangs.
USUAL_THREADS = 8


def number(kx, what):
    """Return the number WHAT of /proc/PID/status of kxfs."""
    status = pathlib.Path(f"/proc/{kx.pid}/status").read_text()
    return int(re.search(rf"^{what}:\s+(\d+)", status, re.M)[1])


def descriptors(kx):
    """Return how many open files and how many sockets kxfs has."""
    found = []
    for fd in pathlib.Path(f"/proc/{kx.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the descriptor was closed meanwhile
            found.append(os.readlink(fd).startswith("socket:"))
    return found.count(False), found.count(True)


class Work:
    """A job of a user, and the processes that read it."""

    def __init__(self, job, way, number, replicas):
        self.job, self.way, self.number, self.replicas = job, way, number, replicas
        self.logs = []  # for jobs of a cluster: for each replica the logs of its runs, the newest last
        self.state = ""  # its final state, once it has ended
        self.readers = [harness.popen([*map(str, cmd)], stdout=subprocess.DEVNULL) for cmd in (
            ["cat", job / "follow"], ["cat", job / "wait"], ["tail", "-n", "+1", "-f", job / "main-0/log"])]

    def end_readers(self):
        """Readers that wait for the end of the job have ended if it has ended."""
        for reader in self.readers[:2] if self.state else []:
            assert reader.wait(harness.LIMIT) == 0, self.job
        for reader in self.readers:
            reader.kill()
            reader.wait(harness.LIMIT)


class Place:
    """A mount KX, its users, and the resources that it uses."""

    def __init__(self, kx, rand):
        self.kx, self.rand = kx, rand
        self.count = 0
        self.used = []  # the values of COUNTED during shifts, one list for each shift
        self.evenings = []  # the values of COUNTED at the ends of shifts

    def shift(self):
        changes = harness.popen(["cat", str(self.kx / "live/changes")], stdout=subprocess.DEVNULL)
        works = list(filter(None, map(self.submit, self.rand.sample(WAYS, len(WAYS)))))
        self.used.append([])
        for _ in range(10):
            self.rand.choice([self.look, self.refuse, self.dryrun, self.weather,
                              lambda: self.print(self.rand.choice(works))])()
            self.used[-1].append(self.look_at_kxfs())
        for work in self.rand.sample(works, len(works)):
            self.end(work)
        changes.kill()
        changes.wait(harness.LIMIT)
        self.clean()
        self.evenings.append(self.least())

    def clean(self):
        """Remove everything that is left of a shift."""
        harness.wait_for(lambda: self.kx.ls("jobs") == [], what="jobs/ to be empty")
        assert self.kx.history() == []
        for path in (*(self.kx / "submit").iterdir(), *(self.kx / "dryrun").iterdir()):
            path.unlink(missing_ok=True)  # a result is removed with its file

    def look_at_kxfs(self):
        """Return the values of COUNTED."""
        files, sockets = descriptors(self.kx)
        state = sum(len(names) for _, _, names in os.walk(self.kx.state))
        return number(self.kx, "VmRSS"), files, sockets, number(self.kx, "Threads"), state

    def least(self):
        """Return the lowest values of several samples, because some files are closed or removed a
        moment later."""
        last = list(self.evenings[-1]) if self.evenings else [0] * len(COUNTED)
        last[THREADS] = USUAL_THREADS
        least = self.look_at_kxfs()
        end = time.monotonic() + (10 if self.evenings else 2)
        while time.monotonic() < end and any(least[i] > last[i] for i in (*EXACT, THREADS)):
            time.sleep(0.1)
            least = tuple(map(min, least, self.look_at_kxfs()))
        return least

    # --- the users' actions ---

    def text(self, number, replicas=1, retries=0, **args):
        tree = json.loads(harness.app(self.script(number), num_replicas=replicas,
                                      max_retries=retries, env={"R": "${replica_id}"}))
        return json.dumps({**tree, "scheduler_args": args} if args else tree)

    def submit(self, way):
        """Submit a job and let it print. Return None if it is removed before its launch."""
        self.count += 1
        replicas, held = self.rand.choice([1, 1, 1, 2, 3]), way.startswith("held")
        text = self.text(self.count, replicas, 5 if way == "suspended" else 0,
                         **({"hold": True} if held else {}))
        job = self.kx.submit(text, self.rand.choice(NAMES))
        assert not held or job.status()["reason"] == "Held" and self.launches(self.count) == 0
        if way == "held and removed":
            harness.remove(job.dir)
            if job.id in self.kx.history():  # only a local job has something to keep in history/
                harness.remove(job.old)
            assert self.launches(self.count) == 0 and job.id not in self.kx.ls("jobs")
            return None
        if held:
            harness.write_ctl(job, "release")
        work = Work(job, way, self.count, replicas)
        self.start(work)
        return work

    def control(self, work, word, *states):
        with contextlib.suppress(TimeoutError):  # the next line shows the result
            harness.write_ctl(work.job, word)
        harness.wait_for(lambda: work.job.state() in states and work.job.status()["pending_command"] is None, what=word)

    def end(self, work):
        """End WORK, and remove it from jobs/ and from history/."""
        job = work.job
        if work.way in ("suspended", "removed"):
            self.until_kept(work)
        if work.way == "suspended":
            self.control(work, "suspend", "CANCELLED")
            self.resume(work)
        if work.way != "removed":
            self.let_end(work, 3 if work.way == "fails" else 0)
            work.state = "FAILED" if work.way == "fails" else "SUCCEEDED"
            job.finish(work.state)
            self.whole(work, job.dir)
            # If a pod is deleted while its log stream is cut, kxfs can't know whether the pod has
            # printed more.
            gaps = [job.gap(f"main-{i}") for i in range(work.replicas)]
            assert work.way == "suspended" or not any(gaps), job
        work.end_readers()
        harness.remove(job.dir)
        harness.wait_for(lambda: job.id in self.kx.history(), what="it to be in the history")
        assert (job.old / "state").read_text().strip() == (work.state or "CANCELLED")
        self.whole(work, job.old)
        harness.run(["rm", "-r", str(job.old)])
        assert not job.old.exists() and self.launches(work.number) == 1

    def look(self):
        """Read many files, as scripts and impatient users do."""
        # A job of another user may be deleted meanwhile, and there may be none.
        harness.run(f"cd {self.kx.mnt} && {self.rand.choice(COMMANDS)}", check=False)
        listed = re.findall(r"^(\S+) +[A-Z]+ ", self.kx.read("list"), re.M)
        assert len(set(listed)) == len(listed)

    def refuse(self):
        """Submit a document with an error."""
        name = self.rand.choice(["bad.yaml", "worse.json"])
        assert harness.err_of(self.kx.write, f"submit/{name}", f"x: {self.rand.random()}\n") == "EINVAL"
        assert self.kx.read("submit", f"{name}.error")

    def dryrun(self):
        self.kx.write("dryrun/try.yaml", self.text(0))
        assert "main" in self.kx.read("dryrun", "try.yaml")


class Cluster(Place):
    def __init__(self, kx, rand, server, volcano, seed):
        super().__init__(kx, rand)
        self.server, self.volcano = server, volcano
        self.created = collections.Counter()  # number of a job -> how often it was created
        self.theirs = []  # names of other users' jobs
        # Deleted jobs of other users. Such a job is in history/ if a process has opened its output.
        self.gone = set()
        server.store.listeners.append(self.made)
        server.faults.at_random(seed, 0.1, [
            lambda r: Fault("cut", r.randrange(1, 9000)), lambda r: Fault("close", r.randrange(1, 9000)), lambda r: Fault("reset"),
            lambda r: Fault("reply", reply=replies.too_many(1))], subresource="log")

    def script(self, number):
        return f"echo {number}"

    def made(self, change):
        if change.after and change.after.resource is st.JOBS and change.before is None:
            text = change.after.tree()["metadata"].get("annotations", {}).get("kxfs/appdef", "")
            self.created.update(map(int, re.findall(r"echo (\d+)", text)))

    def launches(self, number):
        return self.created[number]

    def start(self, work):
        harness.wait_for(lambda: self.launches(work.number), what="the launch")
        work.pods = self.volcano.start(work.job.id)
        work.logs = [[*runs, self.volcano.log(pod)] for runs, pod in zip(work.logs or [[]] * work.replicas, work.pods, strict=True)]
        self.print(work)

    def print(self, work):
        for runs in work.logs:
            runs[-1].append("".join(f"{'x' * self.rand.randrange(100)} line {i}\n" for i in range(self.rand.choice([1, 10, 200]))))

    def until_kept(self, work):
        self.whole(work, work.job.dir)

    def resume(self, work):
        self.control(work, "resume", "PENDING", "RUNNING")
        harness.wait_for(lambda: len(self.volcano.pods(work.job.id)) == work.replicas, what="its pods")
        self.start(work)

    def let_end(self, work, code):
        self.volcano.finish_all(work.pods, code)

    def whole(self, work, where):
        for i, runs in enumerate(work.logs):
            for run, log in enumerate(runs):
                path = where / f"main-{i}" / ("log" if run == len(runs) - 1 else f"log.{run}")

                def same(path=path, log=log):
                    try:
                        now = path.read_bytes()
                    except (TimeoutError, FileNotFoundError):  # the output has not arrived yet
                        return False
                    assert log.data().startswith(now), f"{path} is not what was printed"
                    return now == log.data()

                harness.wait_for(same, what=f"{path} to be whole")

    def weather(self):
        """Break connections, or let another user create or delete a job."""
        rand, server = self.rand, self.server
        what = rand.random()
        if what < 0.4:
            server.end_streams(rand.choice(["end", "close", "reset"]), **rand.choice([{"verb": "watch"}, {"subresource": "log"}]))
        elif what < 0.5:
            server.expire()
        elif what < 0.6:
            server.away(rand.choice(["reset", "close"]))
            time.sleep(rand.uniform(0, 1))
            server.back()
        elif what < 0.8 or not self.theirs:
            self.count += 1
            job = server.store.add(st.JOBS, watching.job(f"theirs-{self.count}", phase="Running"))
            server.store.add(st.PODS, watching.pod(job, "main", 0, phase="Running"))
            self.theirs.append(job.name)
            harness.wait_for(lambda: job.name in self.kx.ls("jobs"), what="a job of somebody else")
        else:
            self.one_goes()
        for resource in ("jobs", "pods"):
            harness.wait_for(lambda resource=resource: server.open_streams(verb="watch", resource=resource), what="the watches")

    def one_goes(self):
        name = self.theirs.pop(0)
        self.gone.add(name)
        self.server.store.remove(st.JOBS, "test", name)  # Volcano deletes its pod, too
        harness.wait_for(lambda: name not in self.kx.ls("jobs"), what="a job of somebody else to go")

    def clean(self):
        while self.theirs:
            self.one_goes()
        for name in self.kx.history():
            assert name in self.gone, name
            harness.run(["rm", "-r", str(self.kx / "history" / name)])
        super().clean()
        # Clear what the test itself records, because that grows with each job.
        self.created.clear()
        self.gone.clear()
        self.server.requests.clear()
        self.server.api.logs.clear()
        self.server.expire()


class Local(Place):
    def file(self, number, what):
        return self.kx.work / f"{number}.{what}"

    def script(self, number):
        """Return a script that counts until it may end, and then leaves its last number."""
        end = self.file(number, "end")
        return (f"echo run >> {self.file(number, 'runs')}.$R; i=0; while :; do i=$((i + 1)); echo line $i; "
                f"[ ! -e {end} ] || break; sleep 0.3; done; echo $i > {self.file(number, 'count')}.$R; exit $(cat {end})")

    def launches(self, number):
        with contextlib.suppress(FileNotFoundError):
            return self.file(number, "runs.0").read_text().count("run")
        return 0

    def start(self, work):
        for i in range(work.replicas):
            work.job.until_logged("line 1\n", f"main-{i}")

    def print(self, work):
        """Nothing to do: the programs print all the time."""

    def weather(self):
        """Nothing to do except in a cluster."""

    def until_kept(self, work):
        """Nothing to wait for: local programs write to their log files themselves."""

    def resume(self, work):
        self.control(work, "resume", "RUNNING")

    def let_end(self, work, code):
        new = self.file(work.number, "new")
        new.write_text(f"{code}\n")
        new.rename(self.file(work.number, "end"))

    def whole(self, work, where):
        for i in range(work.replicas):
            lines = (where / f"main-{i}" / "log").read_text().splitlines(True)
            assert lines == [f"line {n}\n" for n in range(1, len(lines) + 1)], f"{where}: {lines[-10:]}"
            # If one of several replicas fails, kxfs ends the others before their last line.
            if work.state == "SUCCEEDED" or (work.state and work.replicas == 1):
                assert len(lines) == int(self.file(work.number, f"count.{i}").read_text()), where

    def clean(self):
        super().clean()
        for file in self.kx.work.iterdir():
            file.unlink()
        harness.wait_for(lambda: not self.kx.helpers(), what="the helpers to end")


def maxima(rows):
    return [max(column) for column in zip(*rows, strict=True)]


def not_grown(place, sanitized):
    """Check that PLACE does not use more and more resources. Ignore memory that a sanitizer holds back."""
    middle = len(place.evenings) // 2
    halves = place.used[:middle], place.used[middle:]
    first, second = (maxima(itertools.chain(*half)) for half in halves)
    before, after = maxima(place.evenings[:middle]), maxima(place.evenings[middle:])
    kind = type(place).__name__.lower()
    said = ", ".join(f"{a} and {b} {what}" for what, a, b in zip(COUNTED, first, second, strict=True))
    print(f"{kind}: {len(place.evenings)} shifts, {place.count} jobs; in both halves at most {said}; "
          f"at the ends of shifts {place.evenings[0]} to {place.evenings[-1]}")
    for i, what in list(enumerate(COUNTED))[1:]:
        bound = before[i] if i in EXACT else USUAL_THREADS if i == THREADS else first[i]
        assert after[i] <= bound, f"{kind}: {after[i]} {what} at the end of a shift, after {bound}: {place.evenings}"
    if not sanitized:
        assert second[0] <= first[0] * 1.1 + MORE_MEMORY, f"{kind}: {second[0]} KiB, after {first[0]}: {place.evenings}"


@pytest.mark.timeout(SECONDS + 1200)
def test_day(server, volcano, make_mount, make_kx, sanitized, pytestconfig):
    seed = pytestconfig.getoption("--seed") or random.randrange(1 << 32)
    print(f"seed {seed}")
    rand = random.Random(seed)
    places = [Cluster(make_mount(server), rand, server, volcano, seed), Local(make_kx(), rand)]
    begin = time.monotonic()
    for place in places:  # some files of STATE exist from their first use on
        for do in (place.refuse, place.dryrun):
            do()
    while time.monotonic() < begin + SECONDS or len(places[0].evenings) < 4:
        for place in places:
            place.shift()
    for place in places:
        not_grown(place, sanitized)
    print(f"{round(time.monotonic() - begin)} seconds of use")


# --- Many jobs --------------------------------------------------------------------------------
# A namespace with KXFS_MANY_JOBS jobs, in KXFS_MANY_ROUNDS rounds. Jobs of other users are created,
# end and are deleted. The server also expires the versions of the watches, so that kxfs must list
# everything again. Meanwhile users list and read all jobs, and submit and remove one. Each job is
# always shown exactly once, with the state on the server. No request takes longer than DEADLINE.
# After a restart, kxfs shows the same.
#
# A seed, which is printed, determines what users do (`--seed N`).

JOBS = int(os.environ.get("KXFS_MANY_JOBS", "4000"))
ROUNDS = int(os.environ.get("KXFS_MANY_ROUNDS", "3"))
DEADLINE = 30  # the longest time of a request in seconds, many times what it needs; a start may take LIMIT
MOVING = JOBS // 20  # jobs that are created and deleted
# The memory that kxfs may use: a number of MiB, and some KiB more for each job. tests/bench/README.md measures 5 KiB;
# the lists need the same again, because a new list exists beside the shown jobs and list.jsonl is a text of all jobs.
MEMORY = 64, 10
STATES = {"Completed": "SUCCEEDED", "Failed": "FAILED", "Running": "RUNNING", "Pending": "PENDING", "Aborted": "CANCELLED"}
PODS = {"Completed": "Succeeded", "Failed": "Failed", "Running": "Running", "Pending": "Pending"}


@contextlib.contextmanager
def beside(step, seconds):
    """Repeat STEP in a thread while the `with` block runs, with pauses of SECONDS."""
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
    """The jobs of other users: names and states. Jobs in STILL don't change, jobs in MOVING do."""

    def __init__(self, store, rand):
        self.store, self.rand = store, rand
        self.still, self.moving = {}, {}
        self.ever = set()  # names of all jobs that have ever changed
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
        self.store.change(st.PODS, "test", f"{name}-main-0",
                          lambda tree: tree.update(status=pod["status"]))
        self.store.change(st.JOBS, "test", name, lambda tree: tree["status"].update(
            state={"phase": phase, "lastTransitionTime": st.now()}))
        self.moving[name] = STATES[phase]

    def goes(self, name):
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
        """While the `with` block runs, create, end and delete some hundred jobs a second."""
        return beside(self.step, 0.005)


class People:
    def __init__(self, kx, server, world, rand):
        self.kx, self.server, self.world, self.rand = kx, server, world, rand
        self.slowest = collections.Counter()  # request -> the most seconds that it took
        self.count = collections.Counter()
        self.still = list(world.still)

    def timed(self, what, call, *args):
        begin = time.monotonic()
        found = call(*args)
        took = time.monotonic() - begin
        assert took < DEADLINE, f"{what} took {took:.1f} s"
        self.slowest[what] = max(self.slowest[what], took)
        self.count[what] += 1
        return found

    def tool(self, what, *cmd):
        """Return the output of a program. End it if it takes too long."""
        return self.timed(what, lambda: harness.run([str(arg) for arg in cmd], timeout=DEADLINE).stdout)

    def right(self, shown, what):
        """Check SHOWN, pairs of name and state (or None): it must have each job once, and unchanging jobs in their
        state."""
        assert len(dict(shown)) == len(shown), f"{what} has a job twice"
        states = dict(shown)
        wrong = [(name, state, states.get(name, "nothing")) for name, state in self.world.still.items()
                 if states.get(name, "nothing") not in (state, None)]
        assert not wrong, f"{what}: {len(wrong)} wrong, as {wrong[:5]}"
        strange = states.keys() - self.world.still.keys() - self.world.ever
        assert not strange, f"{what} has {list(strange)[:5]}"
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
        """Read the state of an unchanging job while other requests run."""
        name = self.rand.choice(self.still)
        state = self.timed("one state beside it", self.kx.read, "jobs", name, "state").strip()
        assert state == self.world.still[name], name

    def look(self):
        self.names()
        self.listed()
        self.listed_as_json()
        some = self.rand.sample(self.still, 200)
        said = self.tool("cat 200 states", "cat", *(self.kx / "jobs" / name / "state" for name in some)).split()
        assert said == [self.world.still[name] for name in some]

    def in_step(self):
        """Nothing changes any more: check that everything that users read agrees with the server."""
        expected = self.world.still | self.world.moving
        harness.wait_for(lambda: self.listed() == expected, DEADLINE, "list to agree with the server", step=0.2)
        assert self.listed_as_json() == expected
        assert self.names().keys() == expected.keys()
        assert expected.keys() == {obj.name for obj in self.server.store.objects(st.JOBS)[0]}

    def submit(self):
        """Submit a job, and remove it again."""
        job = self.timed("submit", self.kx.submit, harness.app("true"))
        self.world.ever.add(job.id)
        assert self.server.store.find(st.JOBS, "test", job.id)
        self.tool("rm -r of a new job", "rm", "-r", job.dir)
        assert self.server.store.find(st.JOBS, "test", job.id) is None

    def relist(self):
        """Expire the watches' versions on the server. While kxfs lists everything again, it shows all jobs."""
        def whole():
            return sum("continue" not in req.query and "fieldSelector" not in req.query
                       for req in self.server.seen(verb="list", resource="pods"))

        before = whole()
        self.server.expire()
        harness.wait_for(lambda: whole() > before, DEADLINE, "another list")
        while not self.server.open_streams(verb="watch", resource="pods") or not self.server.open_streams(verb="watch", resource="jobs"):
            self.look()
        self.server.requests.clear()


def check_use(kx, sanitized):
    """Check the memory of kxfs. Ignore memory that a sanitizer holds back."""
    most, now, threads = (number(kx, what) for what in ("VmHWM", "VmRSS", "Threads"))
    opened = sum(descriptors(kx))
    print(f"kxfs: {most >> 10} MiB of memory at most, {now >> 10} MiB now, {now / JOBS:.1f} KiB a job, "
          f"{opened} descriptors, {threads} threads")
    if not sanitized:
        assert most <= MEMORY[0] * 1024 + MEMORY[1] * JOBS, f"{most} KiB for {JOBS} jobs"
    assert opened < 100 and threads < 20


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
        with world.goes_on(), beside(people.one_state, 0.02):
            people.look()
            people.submit()
            people.relist()
        people.in_step()
        check_use(kx, sanitized)
        assert kx.end() == 0
        with world.goes_on():  # while no user reads
            time.sleep(1)
    times = ", ".join(f"{what} {took:.2f} s" for what, took in people.slowest.items())
    print(f"many: {JOBS} jobs, {ROUNDS} starts of at most {max(starts):.1f} s, {people.count.total()} requests, the slowest: {times}")
