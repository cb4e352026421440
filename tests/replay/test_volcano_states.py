# SPDX-License-Identifier: MIT
"""The tree while a recording of a real cluster is played: the state of the job and of every replica, after each
event."""

import contextlib
import errno
import json
import random

import harness
import pytest
import recordings
import store as st
import watching

# The states that a user sees, in order; if a recording ends with a deletion, the job is gone.
JOBS = {
    "success": ["PENDING", "RUNNING", "SUCCEEDED"],
    "fail": ["PENDING", "RUNNING", "FAILED"],
    "retry_replica": ["PENDING", "RUNNING", "FAILED"],
    "retry_application": ["PENDING", "RUNNING", "PENDING", "RUNNING", "FAILED"],
    "suspend_resume": ["PENDING", "RUNNING", "PENDING", "RUNNING", "SUCCEEDED"],
    "delete_running": ["PENDING", "RUNNING", None],
    "gang_too_big": ["PENDING", None],
    "image_pull_failure": ["PENDING", None],
    "pending_unschedulable": ["PENDING", None],
}
# The last data of each replica: state, exit code, attempt. Volcano drops its counts at the end.
REPLICAS = {
    "success": {"trainer-0": ("SUCCEEDED", 0, 0), "trainer-1": ("SUCCEEDED", 0, 0)},
    "fail": {"trainer-0": ("FAILED", 3, 0), "trainer-1": ("FAILED", 3, 0)},
    "retry_replica": {"trainer-0": ("FAILED", 3, 0)},
    "retry_application": {"trainer-0": ("FAILED", 3, 1)},
    "suspend_resume": {"trainer-0": ("SUCCEEDED", 0, 1)},
}


class Barrier:
    """A job made by the test: once its changes show, all earlier events were processed.

    Jobs are shown in the order of their first unpublished change. So one change of it may be shown before an earlier
    one of another job; two, one after the other, may not."""

    RESOURCE, POD, REPLICA = st.JOBS, "barrier-main-0", "main-0"

    def __init__(self, server, kx):
        self.server = server
        self.kx = kx
        self.n = 0
        self.create(server.store)

    def create(self, store):
        job = store.add(st.JOBS, watching.job("barrier"))
        store.add(st.PODS, watching.pod(job, "main", 0))

    def wait(self):
        self.tick()
        self.tick()

    def tick(self):
        self.n += 1
        word = f"Tick{self.n}"

        def edit_job(tree):
            tree["metadata"]["annotations"] = {"tick": word}

        def edit_pod(tree):
            tree["status"]["containerStatuses"] = [
                {"name": "main", "restartCount": 0, "state": {"waiting": {"reason": word}}}]

        self.server.store.change(self.RESOURCE, "test", "barrier", edit_job)
        self.server.store.change(st.PODS, "test", self.POD, edit_pod)
        job = harness.Job(self.kx, "barrier")

        def seen():
            with contextlib.suppress(FileNotFoundError):  # it is listed a moment later
                return word in job.read("manifest.yaml") and job.replica(self.REPLICA)["reason"] == word
            return False

        harness.wait_for(seen, what=f"event {self.n}")


def look(kx, name):
    """Return (state of the job, {replica: status}); (None, {}) if there is no such job. Nothing may happen
    meanwhile."""
    job = harness.Job(kx, name)
    try:
        status = job.status()
        assert job.state() == status["state"]
    except OSError as e:
        assert e.errno == errno.ENOENT
        return None, {}
    return status["state"], {f"{role['name']}-{rep['id']}": rep
                             for role in status["roles"] for rep in role["replicas"]}


class Sequence(list):
    """States in the order in which they were seen, each once."""

    def see(self, state):
        # It may be SUBMITTED before a controller has acted on it.
        if state != "SUBMITTED" and (not self or self[-1] != state):
            self.append(state)


def play(server, kx, recording, after=lambda step: None):
    """Play RECORDING; return the states of the job, and of its replicas, after each event."""
    (name,) = recording.names(st.JOBS)
    barrier = Barrier(server, kx)
    seen, replicas = Sequence(), {}
    last = {}
    for step in recording.steps:
        recordings.apply(server.store, step)
        after(step)
        barrier.wait()
        state, now = look(kx, name)
        seen.see(state)
        last = now or last
        for key, rep in now.items():
            replicas.setdefault(key, Sequence()).see((rep["state"], rep["attempt"]))
    return seen, replicas, last


@pytest.mark.parametrize("scenario", recordings.SCENARIOS)
def test_recording(server, make_mount, scenario):
    """Every event, one by one."""
    kx = make_mount(server)
    recording = recordings.Recording(scenario)
    seen, replicas, last = play(server, kx, recording)
    assert seen == JOBS[scenario]
    for name, (state, code, attempt) in REPLICAS.get(scenario, {}).items():
        rep = last[name]
        assert (rep["state"], rep["exit_code"], rep["attempt"]) == (state, code, attempt)
        wanted = []
        for i in range(attempt + 1):
            wanted += [("PENDING", i), ("RUNNING", i)]
        assert replicas[name][:len(wanted)] == wanted or attempt, replicas[name]
        assert replicas[name][-1] == (state, attempt)
    # A reader of `changes` would have seen the same.
    assert server.count(verb="list", resource="jobs", is_metadata=False) == 1
    assert server.count(verb="watch", resource="pods") == 1


@pytest.mark.parametrize("scenario", recordings.SCENARIOS)
@pytest.mark.concurrent
def test_recording_at_once(server, make_mount, scenario):
    """At any speed, `changes` never shows a state that the job was not in, and the end is right."""
    kx = make_mount(server)
    with watching.Changes(kx) as changes:
        for _ in server.play(scenario):
            pass
        (name,) = recordings.Recording(scenario).names(st.JOBS)
        wanted = [state for state in JOBS[scenario] if state]
        if JOBS[scenario][-1]:
            harness.wait_for(lambda: name in kx.ls("jobs") and harness.Job(kx, name).state() == wanted[-1],
                             what=wanted[-1])
        else:
            harness.wait_for(lambda: name not in kx.ls("jobs"))
        server.store.add(st.JOBS, watching.job("last"))
        lines = changes.until(lambda line: line[1] == "last")
    told = Sequence()
    for _, ident, state, reason in lines:
        if ident == name and reason != "Removed":
            told.see(state)
    # Its events and those of its pods come from two watches: if one of them is late, a state may be reported twice.
    assert set(told) <= set(wanted), (told, wanted)
    if JOBS[scenario][-1]:
        assert told[-1] == wanted[-1] and not set(told[:-1]) & set(harness.FINAL), (told, wanted)


@pytest.mark.parametrize("scenario", [s for s in recordings.SCENARIOS if JOBS[s][-1]])
def test_found_after_the_end(server, make_mount, scenario):
    """A later mount shows the same end: states and exit codes come from the pods."""
    for _ in server.play(scenario):
        pass
    kx = make_mount(server)
    (name,) = recordings.Recording(scenario).names(st.JOBS)
    state, replicas = look(kx, name)
    assert state == JOBS[scenario][-1]
    for key, (rep_state, code, _) in REPLICAS[scenario].items():
        assert (replicas[key]["state"], replicas[key]["exit_code"]) == (rep_state, code)


@pytest.mark.parametrize("scenario", ["success", "retry_application", "suspend_resume", "delete_running"])
@pytest.mark.concurrent
def test_recording_with_faults(server, make_mount, pytestconfig, scenario):
    """The same with watches that break and expire at random moments."""
    seed = pytestconfig.getoption("--seed")
    seed = random.SystemRandom().getrandbits(32) if seed is None else seed
    print(f"seed {seed}")
    rand = random.Random(seed)
    kx = make_mount(server)
    recording = recordings.Recording(scenario)
    # Few per resource: each prolongs the next pause, which should not reach half a minute.
    moments = rand.sample(recording.steps, 6)
    which = ["jobs", "pods"] * 3
    rand.shuffle(which)

    def disturb(step):
        if step not in moments:
            return
        resource = which.pop()
        rand.choice([
            lambda: server.end_streams("end", resource=resource),
            lambda: server.end_streams("close", resource=resource),
            lambda: server.end_streams("reset", resource=resource),
            lambda: (server.inject(b'{"type":"MODIFIED","object":{"kind', resource=resource),
                     server.end_streams(rand.choice(["end", "close"]), resource=resource)),
            lambda: server.expire(resource=resource),
            lambda: server.send_bookmarks(),
        ])()

    seen, _, last = play(server, kx, recording, disturb)
    assert seen == JOBS[scenario]
    for name, (state, code, _) in REPLICAS.get(scenario, {}).items():
        assert (last[name]["state"], last[name]["exit_code"]) == (state, code)


def test_status_of_a_job(server, make_mount):
    """All of `status`, in the middle of a run."""
    kx = make_mount(server)
    recording = recordings.Recording("success")
    (name,) = recording.names(st.JOBS)
    barrier = Barrier(server, kx)
    for step in recording.steps:
        recordings.apply(server.store, step)
        if step.version == 1103:  # both run
            break
    barrier.wait()
    job = harness.Job(kx, name)
    status = job.status()
    assert {key: status[key] for key in ("id", "app", "state", "phase", "backend", "namespace", "queue",
                                         "retries", "created", "finished", "stale_since")} == {
        "id": name, "app": "app", "state": "RUNNING", "phase": "Running", "backend": "volcano",
        "namespace": "test", "queue": "default", "retries": 0,
        "created": "2026-11-21T09:11:24Z", "finished": None, "stale_since": None}
    (role,) = status["roles"]
    assert (role["name"], role["desired"], role["running"]) == ("trainer", 2, 2)
    assert role["replicas"][1]["pod"] == f"{name}-trainer-1-0"
    assert role["replicas"][1]["node"] == "localhost"
    assert kx.ls("jobs", name, "trainer-1")
    assert job.read("state") == "RUNNING\n"
    manifest = job.read("manifest.yaml")
    assert "kind: Job" in manifest and "phase: Running" in manifest and "managedFields" not in manifest


def test_phase_that_is_new_to_us(server, make_mount):
    kx = make_mount(server)
    server.store.add(st.JOBS, watching.job("odd", phase="Meditating"))
    job = harness.Job(kx, "odd")
    harness.wait_for(lambda: "odd" in kx.ls("jobs"))
    assert job.state() == "UNKNOWN"
    assert job.status()["phase"] == "Meditating"


def test_aborted_comes_back(server, volcano, make_mount):
    kx = make_mount(server)
    server.store.add(st.JOBS, watching.job("one"))
    job = harness.Job(kx, "one")
    harness.wait_for(lambda: "one" in kx.ls("jobs"))
    volcano.start("one")
    job.until("RUNNING")
    volcano.set_phase("one", "Aborted")
    job.until("CANCELLED")
    volcano.set_phase("one", "Running")
    harness.wait_for(lambda: job.state() == "RUNNING")


def test_jobs_of_others(server, make_mount):
    """Several replicas per task, several containers, init containers, no labels; unreadable objects are omitted."""
    kx = make_mount(server)
    tree = watching.job("theirs", phase="Running", tasks={"ps": 1, "worker": 3})
    job = server.store.add(st.JOBS, tree)
    for task, count in (("ps", 1), ("worker", 3)):
        for i in range(count):
            server.store.add(st.PODS, watching.pod(job, task, i, phase="Running",
                                                   containers=("main", "side"), init=("prep",)))
    harness.wait_for(lambda: "theirs" in kx.ls("jobs") and "worker-2" in kx.ls("jobs", "theirs"))
    found = harness.Job(kx, "theirs")
    harness.wait_for(lambda: found.replica("worker-2")["state"] == "RUNNING")
    assert [n for n in kx.ls("jobs", "theirs") if n[-1].isdigit()] == ["ps-0", "worker-0", "worker-1", "worker-2"]
    assert found.replica("worker-2")["pod"] == "theirs-worker-2"
    assert {"side.log", "prep.log", "log"} <= set(kx.ls("jobs", "theirs", "worker-2"))
    assert "app.yaml" not in kx.ls("jobs", "theirs")


def test_pods_are_joined_by_owner(server, make_mount):
    """A pod that only has the name and the labels of a job's pods does not belong to it."""
    kx = make_mount(server)
    job = server.store.add(st.JOBS, watching.job("one", phase="Running"))
    stranger = watching.pod(job, "main", 0, phase="Failed")
    stranger["metadata"]["ownerReferences"][0]["uid"] = "another"
    server.store.add(st.PODS, stranger)
    harness.wait_for(lambda: "one" in kx.ls("jobs"))
    Barrier(server, kx).wait()
    assert harness.Job(kx, "one").replica()["state"] != "FAILED"


def test_times(server, make_mount):
    """A job's mtime is the time of its last change, never of an event without one."""
    kx = make_mount(server)
    server.store.add(st.JOBS, watching.job("one", phase="Running"))
    harness.wait_for(lambda: "one" in kx.ls("jobs"))
    barrier = Barrier(server, kx)
    barrier.wait()
    before = (kx / "jobs/one").stat().st_mtime_ns
    server.store.change(st.JOBS, "test", "one", lambda t: t["metadata"].update(annotations={"a": "b"}))
    barrier.wait()
    assert (kx / "jobs/one").stat().st_mtime_ns == before
    server.store.change(st.JOBS, "test", "one",
                        lambda t: t["status"]["state"].update(phase="Completed"))
    harness.wait_for(lambda: harness.Job(kx, "one").state() == "SUCCEEDED")
    harness.wait_for(lambda: (kx / "jobs/one").stat().st_mtime_ns > before)
    assert json.loads((kx / "jobs/one/status.json").read_text())["phase"] == "Completed"


def test_transitions(kx, volcano):
    """The beginnings of phases survive a remount, also of phases that began meanwhile."""
    job = kx.submit(harness.app("true"))
    # A state that lasts shorter than kxfs takes to publish a snapshot is not seen.
    harness.wait_for(lambda: (job.status()["state"], job.status()["phase"]) == ("PENDING", "Pending"))
    (pod,) = volcano.start(job.id)
    harness.wait_for(lambda: job.status()["phase"] == "Running")
    volcano.log(pod).append("hello\n")
    job.until_logged("hello")
    before = job.status()["transitions"]
    assert before[0]["state"] == "SUBMITTED" and before[0]["time"] == job.status()["created"]
    # If the pod's event arrives first, the job runs for a moment before Volcano reports that.
    assert [(t["state"], t["phase"]) for t in before if t["phase"] and (t["state"], t["phase"]) != ("RUNNING", "Pending")
            ] == [("PENDING", "Pending"), ("RUNNING", "Running")]
    kx.end()
    volcano.finish(pod)
    kx.start()
    after = job.status()
    assert after["transitions"][:-1] == before
    last = after["transitions"][-1]
    assert (last["state"], last["phase"]) == ("SUCCEEDED", "Completed")
    # Volcano reports the job's end after it has seen the pod's, which may be a second later.
    assert last["time"] >= after["finished"] >= after["started"]
    said = volcano.server.store.find(st.JOBS, "test", job.id).tree()["status"]["state"]["lastTransitionTime"]
    assert last["time"] == said
