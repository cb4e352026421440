# SPDX-License-Identifier: MIT
"""The tree of a mount of a cluster: jobs of recordings, `status`, list, stamped output, metrics, retries."""

import itertools
import json
import os
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
# Recordings of a real cluster are played to a mount. tests/replay/data/recordings/*.why has what users read after each
# event; test-stories.c checks that without a mount.


@pytest.mark.parametrize("source, resource, scenario, states", [
    ("volcano", st.JOBS, "success", ["PENDING", "RUNNING", "SUCCEEDED"]),
    ("volcano", st.JOBS, "retry_application", ["PENDING", "RUNNING", "FAILED"]),
    ("volcano", st.JOBS, "delete_running", ["PENDING", "RUNNING"]),
    ("mcad", st.APPWRAPPERS, "mcad_fail", ["PENDING", "RUNNING", "FAILED"]),
    ("appwrapper", st.NEW_APPWRAPPERS, "appwrapper_success", ["PENDING", "RUNNING", "SUCCEEDED"]),
    ("jobset", st.JOBSETS, "kueue_jobset_success", ["PENDING", "RUNNING", "SUCCEEDED"]),
    ("job", st.BATCH_JOBS, "job_retry_job", ["PENDING", "RUNNING", "FAILED"]),
])
@pytest.mark.concurrent
def test_recording(server, make_mount, source, resource, scenario, states):
    """A recording is played without pauses. `changes` never shows a state that the job did not have. In the end the
    job is finished with the right state, or gone if the recording removes it while it runs."""
    finished = states[-1] in harness.FINAL
    server.install(resource)
    kx = make_mount(server, source=f"{source}:test")
    recording = recordings.Recording(scenario, resources=(resource, st.PODS))
    (name,) = recording.names(resource)
    with watching.Changes(kx) as changes:
        for step in recording.steps:
            if finished and step.kind == "DELETED" and step.resource is resource:
                break
            recordings.apply(server.store, step)
        if finished:
            harness.wait_for(lambda: name in kx.ls("jobs") and harness.Job(kx, name).state() == states[-1],
                             what="its end")
        else:
            harness.wait_for(lambda: name not in kx.ls("jobs"), what="its removal")
        first = next(step.tree for step in recording.steps if step.resource is resource)
        server.store.add(resource, {**first, "metadata": {"name": "last", "namespace": "test"}})
        lines = changes.until(lambda line: line[1] == "last")
    told = [state for state, _ in itertools.groupby(
        state for _, ident, state, reason in lines if ident == name and reason != "Removed")]
    # A job may be SUBMITTED before a controller has acted on it.
    assert set(told) <= {"SUBMITTED", *states}, told
    if finished:
        assert told[-1] == states[-1] and not set(told[:-1]) & set(harness.FINAL), told


def test_status_of_a_job(server, make_mount):
    """The contents of `status` while the job runs."""
    kx = make_mount(server)
    recording = recordings.Recording("success")
    (name,) = recording.names(st.JOBS)
    for step in recording.steps:
        recordings.apply(server.store, step)
        if step.version == 1103:  # both replicas run
            break
    harness.wait_for(lambda: name in kx.ls("jobs"), what="the job")
    watching.until_runs(harness.Job(kx, name))
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


def test_jobs_of_others(server, make_mount):
    """A job of another user with several replicas per task, several containers, init containers and no labels."""
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


def test_times(server, make_mount):
    """A job's mtime is the time of its last change. An event that changes nothing does not affect it."""
    kx = make_mount(server)
    server.store.add(st.JOBS, watching.job("one", phase="Running"))
    harness.wait_for(lambda: "one" in kx.ls("jobs"))
    before = (kx / "jobs/one").stat().st_mtime_ns
    server.store.change(st.JOBS, "test", "one", lambda t: t["metadata"].update(annotations={"a": "b"}))
    harness.wait_for(lambda: "a: b" in kx.read("jobs/one/manifest.yaml"), what="the event")
    assert (kx / "jobs/one").stat().st_mtime_ns == before
    server.store.change(st.JOBS, "test", "one",
                        lambda t: t["status"]["state"].update(phase="Completed"))
    harness.wait_for(lambda: harness.Job(kx, "one").state() == "SUCCEEDED")
    harness.wait_for(lambda: (kx / "jobs/one").stat().st_mtime_ns > before)
    assert json.loads((kx / "jobs/one/status.json").read_text())["phase"] == "Completed"


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


# --- list and list.jsonl ----------------------------------------------------------------------
# list and list.jsonl of a cluster: queue and submitter, unconfirmed jobs, and jobs with the name of such a file.


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
