# SPDX-License-Identifier: MIT
"""The tree of a mount that shows Volcano's jobs: states, list, stamped output, metrics, retries."""

import contextlib
import errno
import json
import os
import random
import re
import subprocess

import harness
import pytest
import recordings
import replies
import store as st
import watching
from metrics import Metrics

# --- Recordings -------------------------------------------------------------------------------
# Recordings of a real cluster are played to a mount. After each event the tests check the states of the job and of
# every replica.

# The states that a user sees, in order. None: the recording deletes the job.
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
# The last values of each replica: state, exit code, attempt.
REPLICAS = {
    "success": {"trainer-0": ("SUCCEEDED", 0, 0), "trainer-1": ("SUCCEEDED", 0, 0)},
    "fail": {"trainer-0": ("FAILED", 3, 0), "trainer-1": ("FAILED", 3, 0)},
    "retry_replica": {"trainer-0": ("FAILED", 3, 0)},
    "retry_application": {"trainer-0": ("FAILED", 3, 1)},
    "suspend_resume": {"trainer-0": ("SUCCEEDED", 0, 1)},
}


class Barrier:
    """A job that the test creates and changes. When the mount shows the changes, it has processed all earlier
    events.

    kxfs shows jobs in the order of their first change that is not published yet. So it may show one change of this
    job before an earlier change of another job. But if it shows two changes of this job, it has shown all
    changes that were made before the first one.
    """

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
            with contextlib.suppress(FileNotFoundError):  # the job is listed a moment later
                return word in job.read("manifest.yaml") and job.replica(self.REPLICA)["reason"] == word
            return False

        harness.wait_for(seen, what=f"event {self.n}")


def look(kx, name):
    """Return (state of the job, {replica: status}), or (None, {}) if there is no such job. The tree must not change
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
    """The states of a job in the order in which a test has seen them."""

    def see(self, state):
        # A job may be SUBMITTED before a controller has acted on it.
        if state != "SUBMITTED" and (not self or self[-1] != state):
            self.append(state)


def play(server, kx, recording, after=lambda step: None):
    """Play RECORDING. Return the states of the job and of its replicas after each event."""
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
    """Play a recording event by event."""
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
    # There was only one list and one watch, so a reader of `changes` has seen the same states.
    assert server.count(verb="list", resource="jobs", is_metadata=False) == 1
    assert server.count(verb="watch", resource="pods") == 1


@pytest.mark.parametrize("scenario", recordings.SCENARIOS)
@pytest.mark.concurrent
def test_recording_at_once(server, make_mount, scenario):
    """A recording is played without pauses. `changes` never shows a state that the job did not have, and the final
    state is right."""
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
    # Events of the job and of its pods come from two watches. If one watch is late, a state may be reported twice.
    assert set(told) <= set(wanted), (told, wanted)
    if JOBS[scenario][-1]:
        assert told[-1] == wanted[-1] and not set(told[:-1]) & set(harness.FINAL), (told, wanted)


@pytest.mark.parametrize("scenario", [s for s in recordings.SCENARIOS if JOBS[s][-1]])
def test_found_after_the_end(server, make_mount, scenario):
    """A mount that starts after the recording shows the same final states and exit codes, which it gets from the
    pods."""
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
    """Play a recording while watches break and expire at random moments."""
    seed = pytestconfig.getoption("--seed")
    seed = random.SystemRandom().getrandbits(32) if seed is None else seed
    print(f"seed {seed}")
    rand = random.Random(seed)
    kx = make_mount(server)
    recording = recordings.Recording(scenario)
    # Disturb each resource only a few times, because each time prolongs the next pause, which must stay far below half
    # a minute.
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
    """The whole text of `status` while the job runs."""
    kx = make_mount(server)
    recording = recordings.Recording("success")
    (name,) = recording.names(st.JOBS)
    barrier = Barrier(server, kx)
    for step in recording.steps:
        recordings.apply(server.store, step)
        if step.version == 1103:  # both replicas run
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
    """A job of another user with several replicas per task, several containers, init containers and no labels.
    Objects that can't be parsed are not shown."""
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
    """A pod that only has a name and labels like those of a job's pods does not belong to the job."""
    kx = make_mount(server)
    job = server.store.add(st.JOBS, watching.job("one", phase="Running"))
    stranger = watching.pod(job, "main", 0, phase="Failed")
    stranger["metadata"]["ownerReferences"][0]["uid"] = "another"
    server.store.add(st.PODS, stranger)
    harness.wait_for(lambda: "one" in kx.ls("jobs"))
    Barrier(server, kx).wait()
    assert harness.Job(kx, "one").replica()["state"] != "FAILED"


def test_times(server, make_mount):
    """A job's mtime is the time of its last change. An event that changes nothing does not affect it."""
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
    """`transitions` keeps the beginnings of phases after a remount. It also has phases that began while kxfs did not
    run."""
    job = kx.submit(harness.app("true"))
    # Wait, because kxfs misses a state that is shorter than the time until it publishes a snapshot.
    harness.wait_for(lambda: (job.status()["state"], job.status()["phase"]) == ("PENDING", "Pending"))
    (pod,) = volcano.start(job.id)
    harness.wait_for(lambda: job.status()["phase"] == "Running")
    volcano.log(pod).append("hello\n")
    job.until_logged("hello")
    before = job.status()["transitions"]
    assert before[0]["state"] == "SUBMITTED" and before[0]["time"] == job.status()["created"]
    # If the pod's event arrives first, the job is RUNNING for a moment before Volcano reports its phase.
    assert [(t["state"], t["phase"]) for t in before if t["phase"] and (t["state"], t["phase"]) != ("RUNNING", "Pending")
            ] == [("PENDING", "Pending"), ("RUNNING", "Running")]
    kx.end()
    volcano.finish(pod)
    kx.start()
    after = job.status()
    assert after["transitions"][:-1] == before
    last = after["transitions"][-1]
    assert (last["state"], last["phase"]) == ("SUCCEEDED", "Completed")
    # Volcano reports the end of the job after the end of the pod, perhaps in the next second.
    assert last["time"] >= after["finished"] >= after["started"]
    said = volcano.server.store.find(st.JOBS, "test", job.id).tree()["status"]["state"]["lastTransitionTime"]
    assert last["time"] == said


# --- list and list.jsonl ----------------------------------------------------------------------
# list and list.jsonl of a cluster: queue and submitter, unconfirmed jobs, texts written by other users.

# Longer than a column, with characters that a terminal interprets and that would break a table.
HOSTILE = "ada\n\x1b[2J lovelace\t\u202e\u4e2d" + "x" * 5000


def rows(text):
    """Return a map of ID to the other words of its line."""
    return {line.split()[0]: line.split()[1:] for line in text[text.index("ID "):].splitlines()[1:]}


def test_queue_and_submitter(kx, server, volcano):
    job = kx.submit(harness.app("true", num_replicas=2))
    volcano.start(job.id)
    watching.until_runs(job)
    assert job.status()["roles"][0]["running"] == 2
    state, age, queue, ready, retries, submitter, reason = rows(kx.read("list"))[job.id]
    assert (state, queue, ready, retries, reason) == ("RUNNING", "default", "2/2", "0", "-")
    assert submitter == job.status()["submitter"] != "" and age[-1] in "smh"
    [line] = [json.loads(line) for line in kx.read("list.jsonl").splitlines()]
    assert line == job.status()


def test_hostile(kx, server):
    """A text that a user has written into an object stays in its column."""
    server.store.add(st.JOBS, watching.job("theirs", annotations={"kxfs/submitter": HOSTILE}))
    harness.wait_for(lambda: "theirs" in kx.ls("jobs"))
    text = kx.read("list")
    assert text.isascii() and text.replace("\n", "").isprintable() and max(map(len, text.splitlines())) < 200
    assert len(text.splitlines()) == 2
    submitter = rows(text)["theirs"][5]
    assert submitter.startswith("ada??[2J?lovelace???xx") and submitter.endswith("...")


@pytest.mark.concurrent
def test_stale(kx, server):
    """The first line shows since when nothing is confirmed, even if there is no job."""
    assert kx.read("list").startswith("ID ")
    server.away()
    harness.wait_for(lambda: kx.read("list").startswith("stale_since: 20"))
    first, titles = kx.read("list").splitlines()
    info = kx.read(".kxfs", "info")
    assert first.split()[1] in info and titles.startswith("ID ")
    server.back()
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: kx.read("list").startswith("ID "))
    harness.wait_for(lambda: "one" in rows(kx.read("list")))
    server.away()
    harness.wait_for(lambda: kx.read("list").startswith("stale_since: 20"))
    assert "one" in rows(kx.read("list"))
    harness.wait_for(lambda: json.loads(kx.read("list.jsonl"))["stale_since"])
    assert kx.read("history", "list").startswith("ID ")


@pytest.mark.parametrize("name", ["list", "list.jsonl"])
def test_job_of_that_name(name, make_mount, server):
    """A job whose id is the name of another file in history/ is shown there under another name, with all files."""
    owner = server.store.add(st.JOBS, watching.job(name, phase="Running"))
    pod = server.store.add(st.PODS, watching.pod(owner, "main", 0, phase="Running"))
    server.api.log(pod, "main").append("hello\n")
    kx = make_mount(server, options="capture=all,cancel=all")
    log = kx / f"jobs/{name}/main-0/log"
    harness.wait_for(lambda: log.stat().st_size == 6)
    server.store.remove(st.PODS, "test", pod.name)
    server.store.remove(st.JOBS, "test", name)
    harness.wait_for(lambda: f"{name}-" in kx.ls("history"))
    assert kx.read("history", f"{name}-", "main-0", "log") == "hello\n"
    assert name in kx.read("history/list") and json.loads(kx.read("history/list.jsonl"))["id"] == name
    harness.remove(kx / f"history/{name}-")
    assert kx.history() == [] and os.path.isfile(kx / f"history/{name}")


# --- stamped ----------------------------------------------------------------------------------
# `stamped` of a cluster's job shows the times of the container's runtime, no matter when a line arrives.

SECOND = 1_000_000_000
START = 1_795_000_000 * SECOND  # 2026-11-18T11:06:40Z


def test_stamped(kx, volcano):
    job = kx.submit(harness.app("true", num_replicas=2))
    first, second = [volcano.log(pod) for pod in volcano.start(job.id)]
    first.append("one\n", at=START)
    second.append("two\n", at=START + SECOND + 123_456_789)
    first.append("three\n", at=START + 2 * SECOND)
    job.until_logged("three\n")
    job.until_logged("two\n", replica="main-1")
    text = "2026-11-18T11:06:40.000000Z one\n2026-11-18T11:06:42.000000Z three\n"
    stamped = job / "main-0/stamped"
    assert stamped.read_text() == text and stamped.stat().st_size == len(text)
    merged = ("2026-11-18T11:06:40.000000Z main/0 one\n2026-11-18T11:06:41.123456Z main/1 two\n"
              "2026-11-18T11:06:42.000000Z main/0 three\n")
    harness.wait_for(lambda: (job / "stamped").read_text() == merged)
    for pod in volcano.pods(job.id):
        volcano.finish(pod, 0)
    job.finish()
    # `stamped` is the same after a remount, as `log` is.
    kx.restart()
    harness.wait_for(lambda: stamped.read_text() == text)
    assert (job / "stamped").read_text() == merged
    assert (job / "stamped").stat().st_size == len(merged)


# --- Metrics ----------------------------------------------------------------------------------
# .kxfs/metrics of a mount of a cluster: how a list, a restarted watch, a log stream, a refusal and an unreachable
# server change the counts. The manual names exactly these metrics.

JOBS_RESOURCE = "jobs.batch.volcano.sh"
APP = harness.app("true", num_replicas=2)


def asked(metrics, verb, resource, code=None):
    """Return the number of requests that the server answered with CODE, or with any status."""
    more = {"code": str(code)} if code else {}
    return metrics.sum("server_requests_total", verb=verb, resource=resource, **more)


def until(kx, condition):
    harness.wait_for(lambda: condition(Metrics(kx)), what=f"metrics, now {kx.read('.kxfs', 'metrics')}")


def test_lists_and_watches(server, make_mount):
    """Each page of a list and each watch counts as one request. A restarted watch counts with the reason."""
    server.api.max_page = 3
    for i in range(7):
        job = server.store.add(st.JOBS, watching.job(f"job-{i}", phase="Running"))
        server.store.add(st.PODS, watching.pod(job, "main", 0, phase="Running"))
    kx = make_mount(server)
    until(kx, lambda now: asked(now, "watch", JOBS_RESOURCE, 200) == 1 and asked(now, "watch", "pods", 200) == 1)
    # kxfs may show the jobs one after the other.
    until(kx, lambda now: now("jobs", state="RUNNING") == 7 and now("pods") == 7)
    now = Metrics(kx)
    # One of these requests is a list of a single object at the start.
    assert asked(now, "list", JOBS_RESOURCE) == asked(now, "list", JOBS_RESOURCE, 200) == 4
    assert server.count(verb="list", resource="jobs", is_metadata=False) == 3
    assert now("view_unconfirmed_seconds") == 0
    assert now("watch_events_total") >= 14

    server.end_streams("end", verb="watch", resource="jobs")
    until(kx, lambda now: now("watch_restarts_total", resource=JOBS_RESOURCE, reason="ended") == 1
          and asked(now, "watch", JOBS_RESOURCE, 200) == 2)
    server.end_streams("reset", verb="watch", resource="pods")
    until(kx, lambda now: now("watch_restarts_total", resource="pods", reason="broken") == 1)
    assert asked(Metrics(kx), "list", JOBS_RESOURCE) == 4  # the watches resumed, so there are no new lists
    until(kx, lambda now: server.open_streams(verb="watch", resource="jobs"))
    server.expire(resource="jobs")
    until(kx, lambda now: now("watch_restarts_total", resource=JOBS_RESOURCE, reason="expired") == 1
          and asked(now, "list", JOBS_RESOURCE, 200) == 7)
    server.store.remove(st.PODS, "test", "job-0-main-0")
    until(kx, lambda now: now("pods") == 6)


@pytest.mark.waits
def test_server_without_bookmarks(server, make_mount):
    """If a server sends no bookmarks, a silent watch is normal, and the objects stay confirmed."""
    server.bookmark_every = 1e9
    kx = make_mount(server)
    until(kx, lambda now: asked(now, "watch", JOBS_RESOURCE, 200) == 1 and asked(now, "watch", "pods", 200) == 1)
    harness.wait_for(lambda: server.count(verb="watch", resource="pods") == 2, timeout=200, what="the next watch")
    harness.wait_for(lambda: server.count(verb="watch", resource="jobs") == 2, what="that of the jobs")
    until(kx, lambda now: asked(now, "watch", JOBS_RESOURCE, 200) == 2)
    assert Metrics(kx)("view_unconfirmed_seconds") == 0


def test_refused(server, make_mount):
    kx = make_mount(server)
    until(kx, lambda now: asked(now, "watch", JOBS_RESOURCE, 200) == 1)
    server.faults.add("reply", reply=replies.forbidden("ada", "watch", st.JOBS, "test"), verb="watch", resource="jobs")
    server.end_streams("end", verb="watch", resource="jobs")
    until(kx, lambda now: asked(now, "watch", JOBS_RESOURCE, 403) == 1
          and now("watch_restarts_total", resource=JOBS_RESOURCE, reason="refused") == 1)
    server.faults.add("reply", reply=replies.forbidden("ada", "create", st.JOBS, "test"), times=9,
                      verb="create", resource="jobs")
    assert harness.err_of((kx / "submit/app.yaml").write_text, APP) == "EACCES"
    now = Metrics(kx)
    assert asked(now, "create", JOBS_RESOURCE, 403) == asked(now, "create", JOBS_RESOURCE) == 1
    assert now("requests_total", request="submit", result="error") == 1


def test_log_stream(kx, server, volcano):
    job = kx.submit(APP)
    (first, _) = volcano.start(job.id)
    until(kx, lambda now: now("log_streams") == 2 and asked(now, "get", "pods/log", 200) >= 2)
    assert asked(Metrics(kx), "create", JOBS_RESOURCE, 201) == 1
    volcano.log(first).append("one\ntwo\nthr")
    until(kx, lambda now: now("captured_lines_total") == 2 and now("captured_bytes_total") == 8)
    volcano.log(first).append("ee\n")
    until(kx, lambda now: now("captured_lines_total") == 3 and now("captured_bytes_total") == 14)
    assert Metrics(kx)("spool_bytes") >= 14
    volcano.finish_all(volcano.pods(job.id))
    job.until("SUCCEEDED")
    until(kx, lambda now: now("log_streams") == 0)
    kx.restart()
    until(kx, lambda now: now("jobs", state="SUCCEEDED") == 1)
    assert Metrics(kx)("captured_bytes_total") == 0  # the output was already there


@pytest.mark.concurrent
def test_away(server, make_mount):
    kx = make_mount(server)
    server.away()
    until(kx, lambda now: now("view_unconfirmed_seconds") >= 1)
    until(kx, lambda now: asked(now, "list", JOBS_RESOURCE, "none") >= 1)
    server.back()
    until(kx, lambda now: now("view_unconfirmed_seconds") == 0)


def test_man_page_has_them_all(server, make_mount, make_kx):
    page = subprocess.run(["mandoc", "-Tutf8", "-Owidth=200", str(harness.ROOT / "docs/kxfs-status.5")], check=True,
                          stdout=subprocess.PIPE, encoding="utf-8").stdout
    page = re.sub(".\b", "", page)  # remove the overstriking of bold text
    told = dict(re.findall(r"\b(kxfs_[a-z_]+)(?:\{([a-z, ]+)\})?", page))
    there = {}
    for kx in (make_mount(server), make_kx()):
        there.update(Metrics(kx).labels)
    # Only a mount with an archive has these metrics (test_archive.py).
    assert {name for name in told if not name.startswith("kxfs_archive")} == set(there)
    for name, labels in there.items():
        assert labels is None or set(filter(None, told[name].split(", "))) == labels, name


# --- Retries ----------------------------------------------------------------------------------
# The effect of max_retries and retry_policy on Volcano. Volcano counts attempts. From 1.11 on it can restart a single
# replica. It deletes the pod whose failure ended the job.


@pytest.fixture
def job(kx, volcano):
    """Return a job with two replicas, each of which may fail once."""
    job = kx.submit(harness.app("true", num_replicas=2, max_retries=1, retry_policy="REPLICA"))
    volcano.start(job.id)
    job.until("RUNNING")
    return job


def uids(server, volcano, job):
    return [server.store.find(st.PODS, "test", pod).uid for pod in volcano.pods(job.id)]


def counts(job):
    status = job.status()
    return status["retries"], status["max_retries"]


def test_application(kx, server, volcano):
    """With retry_policy APPLICATION, a retry is one more attempt of the whole job, and counts once."""
    del server
    job = kx.submit(harness.app("true", max_retries=1))
    for attempt in range(2):
        assert counts(job) == (attempt, 1)
        (pod,) = volcano.start(job.id)
        job.until("RUNNING")
        volcano.log(pod).append(f"attempt {attempt}\n")
        job.until_logged(f"attempt {attempt}\n")
        volcano.finish(pod, 3 + attempt)
        harness.wait_for(lambda n=attempt: job.state() == "FAILED" if n else counts(job) == (1, 1))
    # The end of the job may arrive before the end of its pod.
    harness.wait_for(lambda: job.read("why") == "main-0 ended with exit code 4. Retries used: 1; max_retries is 1. "
                                                "Its output is in main-0/log. Its last output:\n    attempt 1\n", what="why")
    assert counts(job) == (1, 1) and job.replica()["attempt"] == 1
    assert [job.log(name=name) for name in ("log.0", "log")] == [b"attempt 0\n", b"attempt 1\n"]


@pytest.mark.parametrize(("phase", "state"), [("Completed", "SUCCEEDED"), ("Failed", "FAILED"), ("Running", "CANCELLED")])
def test_end_and_removal_together(make_mount, server, phase, state):
    """The events of the end and of the removal of another user's job arrive together. `wait` and `changes` report how
    the job has ended, and a job that waits for this end is launched."""
    owner = server.store.add(st.JOBS, watching.job("theirs", "Running"))
    server.store.add(st.PODS, watching.pod(owner, "main", 0, "Running"))
    kx = make_mount(server)
    wish = {"SUCCEEDED": "ok", "FAILED": "failed", "CANCELLED": "any"}[state]
    held = kx.submit(json.dumps({**json.loads(harness.app("true")), "scheduler_args": {"after": [f"{wish}:theirs"]}}))
    with harness.popen(["cat", str(kx / "jobs/theirs/wait")], stdout=subprocess.PIPE) as reader, watching.Changes(kx) as changes:
        harness.wait_for(lambda: Metrics(kx)("parked_requests", kind="read") == 2, what="both readers")
        harness.wait_for(lambda: server.hold(resource="jobs"), what="the watch of jobs")
        server.store.change(st.JOBS, "test", "theirs", lambda tree: tree["status"].update(state={"phase": phase}))
        server.store.remove(st.JOBS, "test", "theirs")
        server.hold(False, resource="jobs")
        assert reader.communicate(timeout=harness.LIMIT)[0].decode() == state + "\n"
        lines = changes.until(lambda line: line[1] == "theirs" and line[3] == "Removed")
        assert [line[2] for line in lines if line[1] == "theirs"] == ["RUNNING", *[state] * (1 if state == "CANCELLED" else 2)]
    assert "theirs" not in kx.ls("jobs") and "theirs" not in kx.history()
    harness.wait_for(lambda: server.store.find(st.JOBS, "test", held.id), what="the launch")


LOGS = {"resource": "pods", "subresource": "log"}


def job_without_news(kx, server, volcano):
    """Return a job whose pod has printed. From now on, events about its pods are held back."""
    job = kx.submit(harness.app("true", max_retries=1))
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("first\n")
    job.until_logged("first\n")
    server.hold(resource="pods")
    return job, pod


def assert_two_runs(job, pod, server, volcano):
    """Let the events arrive. Check that the log of each pod has only its own output."""
    server.hold(False, resource="pods")
    job.until_logged("second\n")
    volcano.finish(pod, 4)
    job.finish("FAILED")
    assert [job.log(name=name) for name in ("log.0", "log")] == [b"first\n", b"second\n"]


def test_pod_replaced_unseen(kx, server, volcano):
    """The watch of pods is late, so kxfs requests the log of a pod when another pod already has its name. The output
    of the new pod does not get into the log of the old one."""
    job, pod = job_without_news(kx, server, volcano)
    asked = server.count(**LOGS)
    volcano.log(pod).end()
    harness.wait_for(lambda: server.count(**LOGS) > asked and server.seen(**LOGS)[-1].code == 200,
                     what="the log to be asked for again")
    harness.wait_for(lambda: not server.open_streams(**LOGS), what="the streams to end")
    volcano.finish(pod, 3)
    lists = server.count(resource="pods", verb="list", subresource="")
    volcano.start(job.id)
    volcano.log(pod).append("second\n")
    harness.wait_for(lambda: server.count(resource="pods", verb="list", subresource="") > lists,
                     what="the pod to be asked for")
    assert_two_runs(job, pod, server, volcano)


def test_pod_replaced_while_away(kx, server, volcano):
    """The server was unreachable while the pod ended. kxfs does not mistake a new pod of the same name for the old
    one."""
    job, pod = job_without_news(kx, server, volcano)
    refused = server.faults.add("reply", times=1000, reply=replies.internal(), **LOGS)
    server.end_streams("reset", **LOGS)
    volcano.finish(pod, 3)
    volcano.start(job.id)
    volcano.log(pod).append("second\n")
    asked = server.count(**LOGS)
    harness.wait_for(lambda: server.count(**LOGS) > asked, what="the log to be asked for")
    server.faults.clear(refused)
    harness.wait_for(lambda: [req.code for req in server.seen(**LOGS)].count(200) > 2,
                     what="the log of the other pod to be asked for")
    asked = server.count(**LOGS)
    harness.wait_for(lambda: server.count(resource="pods", verb="list", subresource="") > 1
                     or server.count(**LOGS) > asked + 3, what="the pod to be asked for")
    assert_two_runs(job, pod, server, volcano)


def test_replica(server, volcano, job):
    """With retry_policy REPLICA, only the failed replica restarts."""
    first, second = volcano.pods(job.id)
    before = uids(server, volcano, job)
    volcano.log(second).append("once\n")
    job.until_logged("once\n", "main-1")
    volcano.finish(second, 3)
    harness.wait_for(lambda: counts(job) == (1, 1))
    volcano.run(second)
    harness.wait_for(lambda: job.replica("main-1")["attempt"] == 1 and job.replica("main-1")["state"] == "RUNNING")
    after = uids(server, volcano, job)
    assert after[0] == before[0] and after[1] != before[1] and job.replica()["attempt"] == 0
    volcano.log(second).append("twice\n")
    job.until_logged("twice\n", "main-1")
    volcano.finish_all([first, second])
    job.finish()
    assert [job.log("main-1", name) for name in ("log.0", "log")] == [b"once\n", b"twice\n"]


def test_replica_without_retries(server, volcano, job):
    """Volcano deletes the pod whose failure ended the job. kxfs still shows how the pod ended."""
    del server
    _, second = volcano.pods(job.id)
    volcano.finish(second, 3)
    volcano.run(second)
    harness.wait_for(lambda: job.replica("main-1")["attempt"] == 1 and job.replica("main-1")["state"] == "RUNNING")
    volcano.finish(second, 4)
    job.finish("FAILED")
    assert volcano.pods(job.id) == [] and counts(job) == (1, 1)
    harness.wait_for(lambda: (job.replica("main-1")["state"], job.replica("main-1")["exit_code"]) == ("FAILED", 4))
    harness.wait_for(lambda: job.replica("main-0")["state"] == "CANCELLED")
    assert job.status()["reason"] == "Error"
    assert job.read("why").startswith("main-1 ended with exit code 4. Retries used: 1; max_retries is 1.")


def test_replica_before_1_11(server, volcano, job):
    """Before 1.11, Volcano accepts the policy and ignores it."""
    del server
    volcano.targets = False
    volcano.finish_all(volcano.pods(job.id), 3)
    job.finish("FAILED")
    assert counts(job) == (0, 1)
