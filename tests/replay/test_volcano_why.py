# SPDX-License-Identifier: MIT
"""`why`, `events` and `queues/` of a cluster's jobs: what the scheduler, events, queues and pods report. Also texts
from outside that could affect a terminal."""

import json
import os
import select
import time
import uuid

import harness
import pytest
import replies
import store as st
import watching
import yaml
from fakes import FakeMcad
from submitting import error_of

# --- The scheduler, events and queues ---------------------------------------------------------
# `why`, `events` and `queues/` show data of the scheduler, of events and of queues. Some mounts lack the right to watch
# one of them. tests/unit/spec/kinds/test-volcano_why.c checks the sentence for each cause.

FULL = "resource in cluster is overused: overused cpu"
NOISE = "0/0 tasks in gang unschedulable: pod group is not ready, 3 minAvailable"
WHY_FULL = ("The job waits: the cluster has no capacity for it now: it "
            "needs 2.4 cpu. It starts automatically when capacity "
            "becomes available.\n")


def group(job, phase="Pending"):
    """Return a PodGroup for JOB (an Object)."""
    return {"apiVersion": st.PODGROUPS.api_version, "kind": "PodGroup",
            "metadata": {"name": f"{job.name}-{job.uid}", "namespace": job.namespace, "uid": str(uuid.uuid4()),
                         "creationTimestamp": st.now(),
                         "ownerReferences": [{"kind": "Job", "name": job.name, "uid": job.uid,
                                              "controller": True}]},
            "spec": {"minMember": 3, "minResources": {"cpu": "2400m"}, "queue": "default"},
            "status": {"phase": phase}}


def event(about, kind, message, reason="Unschedulable", name=None):
    """Return an Event about ABOUT (an Object)."""
    return {"metadata": {"name": name or f"{about.name}.{uuid.uuid4().hex[:8]}", "namespace": about.namespace,
                         "uid": str(uuid.uuid4()), "creationTimestamp": st.now()},
            "involvedObject": {"kind": kind, "name": about.name, "uid": about.uid},
            "type": "Normal", "reason": reason, "message": message, "count": 1, "lastTimestamp": st.now()}


def queue(name, **status):
    return {"apiVersion": st.QUEUES.api_version, "kind": "Queue",
            "metadata": {"name": name, "uid": str(uuid.uuid4()), "creationTimestamp": st.now()},
            "spec": {"weight": 2, "capability": {"cpu": "4"}}, "status": {"state": "Open", **status}}


class Waiting:
    """A job `gang` on SERVER whose PodGroup the scheduler does not admit."""

    def __init__(self, server):
        self.store = server.store
        self.job = self.store.add(st.JOBS, watching.job("gang", "Pending", tasks={"main": 3}))
        self.group = self.store.add(st.PODGROUPS, group(self.job))
        self.series = [self.store.add(st.EVENTS, event(self.group, "PodGroup", text)) for text in (FULL, NOISE)]

    def again(self, count):
        """Let the events of both series occur again, COUNT times in all."""
        for one in self.series:
            self.store.change(st.EVENTS, "test", one.name, lambda tree: tree.update(
                count=count, lastTimestamp=st.now()))


def info(kx):
    return yaml.safe_load(watching.known(kx))


def why(kx, job="gang"):
    return kx.read("jobs", job, "why")


def test_events(server, make_mount):
    """`events` has a line for each cause, about the job, its PodGroup and its pods. Events without a meaning for
    users are omitted."""
    waiting = Waiting(server)
    kx = make_mount(server)
    harness.wait_for(lambda: why(kx) == WHY_FULL, what="why")
    status = harness.Job(kx, "gang").status()
    assert status["reason"] == "ClusterFull"
    assert status["message"] == "the cluster has no capacity for it now: it needs 2.4 cpu"
    waiting.again(7)
    # An event may arrive before the object that it is about.
    pod = watching.pod(waiting.job, "main", 0)
    early = event(waiting.job, "Pod", "one\ttab\nand line", "Started")
    early["involvedObject"].update(name="gang-main-0", uid=pod["metadata"]["uid"])
    server.store.add(st.EVENTS, early)
    server.store.add(st.EVENTS, event(waiting.job, "Job", "begun", "Created"))
    server.store.add(st.PODS, pod)
    harness.wait_for(lambda: len(kx.read("jobs/gang/events").splitlines()) == 3, what="the events")
    lines = [line.split("\t")[1:] for line in kx.read("jobs/gang/events").splitlines()]
    assert sorted(lines) == [
        ["Job/gang", "Normal", "Created", "1", "begun"],
        ["Pod/gang-main-0", "Normal", "Started", "1", "one\\ttab\\nand line"],
        [f"PodGroup/{waiting.group.name}", "Normal", "Unschedulable", "7", FULL]]
    assert os.stat(kx / "jobs/gang/events").st_size == len(kx.read("jobs/gang/events").encode())


# --- queues ----------------------------------------------------------------------------------------


def test_queues(server, make_mount):
    """The start waits for the queue of the mount, up to 5 s. Later queues, changes and removals are shown."""
    server.store.add(st.QUEUES, queue("default"))
    job = server.store.add(st.JOBS, watching.job("one", "Running"))
    server.store.add(st.JOBS, watching.job("two", "Pending"))
    server.faults.add("slow", amount=100, delay=0.05, verb="list", resource="queues")
    begin = time.monotonic()
    kx = make_mount(server)
    assert (kx / "queues").exists() or time.monotonic() > begin + 4
    harness.wait_for(lambda: (kx / "queues").exists() and kx.ls("queues") == ["default"], what="queues/")
    assert kx.read("queues/default/status") == (
        'name: default\nstate: Open\nweight: 2\ncapability:\n  cpu: "4"\nallocated: {}\nreserved: {}\n'
        "pending: 1\nrunning: 1\n")
    before = os.stat(kx / "queues/default/status").st_mtime_ns
    server.store.change(st.QUEUES, "", "default",
                        lambda tree: tree["status"].update(allocated={"cpu": "1500m"}, state="Closed"))
    harness.wait_for(lambda: "allocated:\n  cpu: 1500m\n" in kx.read("queues/default/status"), what="the change")
    assert os.stat(kx / "queues/default/status").st_mtime_ns > before
    assert os.stat(kx / "queues/default").st_mtime_ns > before
    server.store.remove(st.JOBS, "test", job.name)
    harness.wait_for(lambda: "running: 0\n" in kx.read("queues/default/status"), what="no job")
    server.store.add(st.QUEUES, queue("other"))
    harness.wait_for(lambda: kx.ls("queues") == ["default", "other"], what="the other queue")
    server.store.remove(st.QUEUES, "", "default")
    harness.wait_for(lambda: kx.ls("queues") == ["other"], what="the queue to go")
    assert harness.err_of(kx.read, "queues/default/status") == "ENOENT"


def test_queues_that_do_not_come(server, make_mount):
    """If the queues don't arrive, the start waits for them only for a limited time."""
    server.store.add(st.QUEUES, queue("default"))
    server.store.add(st.JOBS, watching.job("one", "Running"))
    server.faults.add("silent", times=100, verb="list", resource="queues")
    kx = make_mount(server)
    assert kx.ls("jobs") == ["one"] and not (kx / "queues").exists()


# --- missing rights ---


@pytest.mark.parametrize("resource", ["podgroups", "events", "queues"])
def test_forbidden(server, make_mount, resource):
    """If one right is missing, the mount works, reports the refusal, and shows everything else."""
    server.forbidden.append({"resource": resource})
    server.store.add(st.QUEUES, queue("default"))
    Waiting(server)
    kx = make_mount(server)
    harness.wait_for(lambda: info(kx)["refused"], what="the refusal")
    found = info(kx)["refused"]
    assert {one["resource"].split(".")[0] for one in found} == {resource}
    assert len(found) == 1
    assert found[0]["verb"] == "list" and found[0]["cost"] and found[0]["answer"].startswith("forbidden: user tester ")
    assert found[0]["answer"].splitlines()[1:], "the remedy is on a line of its own"
    assert kx.read("jobs/gang/state") == "PENDING\n"
    if resource == "queues":
        harness.wait_for(lambda: why(kx) == WHY_FULL, what="why")
    else:
        harness.wait_for(lambda: why(kx) == f"The job waits: the reason is unknown. This user may not list "
                                            f"and watch {resource}, which would show the reason: ask the "
                                            f"cluster's administrator for that right.\n",
                         what="the missing right in why")
        harness.wait_for(lambda: (kx / "queues/default/status").exists(), what="the queue")
    if resource == "events":
        assert not (kx / "jobs/gang/events").exists()
    else:
        harness.wait_for(lambda: (kx / "jobs/gang/events").exists(), what="events")
    assert (kx / "queues").exists() == (resource != "queues")


def test_withdrawn(server, make_mount):
    """When the user loses the right to read objects, kxfs no longer shows them as current."""
    for name in ("default", "other"):
        server.store.add(st.QUEUES, queue(name))
    Waiting(server)
    kx = make_mount(server)
    harness.wait_for(lambda: why(kx) == WHY_FULL and (kx / "queues/other").exists(), what="why and queues/")
    server.forbidden += [{"resource": "podgroups"}, {"resource": "queues", "fields": ""}]
    server.end_streams("end", resource="podgroups")
    server.end_streams("end", resource="queues")
    harness.wait_for(lambda: len(info(kx)["refused"]) == 2, what="the refusal")
    harness.wait_for(lambda: "2.4 cpu" not in why(kx), what="why without the group")
    # queues/ is missing before the mount's own queue has arrived.
    harness.wait_for(lambda: (kx / "queues/default").exists() and kx.ls("queues") == ["default"],
                     what="queues/ without the other")


def test_not_served(server, make_mount):
    """In a cluster without PodGroups and queues, no refusal is reported, and no empty list is shown."""
    server.uninstall(st.PODGROUPS, st.QUEUES)
    server.store.add(st.JOBS, watching.job("one", "Pending"))
    kx = make_mount(server)
    harness.wait_for(lambda: (kx / "jobs/one/events").exists(), what="events")
    harness.wait_for(lambda: server.count(verb="list", resource="events") == 1, what="its list")
    assert info(kx)["refused"] == [] and not (kx / "queues").exists()


# --- Causes -----------------------------------------------------------------------------------
# `why`, `status` and `wait` of a job that fails or loses its node. tests/unit/spec/kinds/test-volcano_why.c checks the
# sentence for each cause.


def edit_pod(server, pod, edit):
    assert server.store.change(st.PODS, "test", pod, edit) is not None


@pytest.fixture
def job(kx, volcano):
    """Return a job with one running replica."""
    job = kx.submit(harness.app("true"))
    volcano.start(job.id)
    watching.until_runs(job)
    return job


def until_why(job, text):
    harness.wait_for(lambda: job.read("why") == text, what=text)


@pytest.mark.parametrize("told", [True, False], ids=["told", "never told"])
def test_wait_for_the_reason(server, volcano, job, told):
    """The end of the job is reported before the ends of its pods. `wait` ends when `why` has the reasons of the
    pods, or after some seconds."""
    assert server.hold(resource="pods") == 1
    begin = time.monotonic()
    volcano.finish(volcano.pods(job.id)[0], 3)
    harness.wait_for(lambda: job.state() == "FAILED", what="the end")
    fd = os.open(job / "wait", os.O_RDONLY)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    assert not poll.poll(0) or time.monotonic() > begin + 4
    assert job.read("why") == "The job failed: Failed.\n"
    server.hold(not told, resource="pods")
    assert os.read(fd, 100) == b"FAILED\n"
    os.close(fd)
    assert ("exit code 3" in job.read("why")) == told or time.monotonic() > begin + 4


ERROR = {"message": {"message": "RuntimeError: boom", "errorCode": 1, "extraInfo": {
    "py_callstack": "Traceback (most recent call last):\n  File \"boom.py\", line 5\nRuntimeError: boom\n"}}}


@pytest.mark.parametrize("left, message, words", [
    (json.dumps(ERROR), "RuntimeError: boom",
     ["Traceback (most recent call last):", '  File "boom.py", line 5', "RuntimeError: boom"]),
    ("", "exit code 1", ["a line of the log"]),
], ids=["structured", "none"])
def test_last_words(kx, server, volcano, job, left, message, words):
    """The last words are the program's termination message LEFT, or else the last lines of its log. A remount and
    history/ show them, too."""
    (pod,) = volcano.pods(job.id)
    why = "".join(f"    {line}\n" for line in words)
    volcano.log(pod).append("a line of the log\n")
    volcano.finish(pod, 1, message=left)
    assert job.read("wait") == "FAILED\n"
    assert job.read("why") == (f"main-0 ended with exit code 1. There was no retry, because "
                               f"max_retries is 0. Its output is in main-0/log. Its last "
                               f"output:\n{why}")
    assert job.status()["last_words"] == "\n".join(words) and job.replica()["message"] == message
    kx.restart()
    assert job.read("why").endswith(f"Its last output:\n{why}")
    server.store.remove(st.PODS, "test", pod)
    job.cancel()
    harness.wait_for(lambda: (job.old / "why").exists(), what="the history")
    assert (job.old / "why").read_text().endswith(f"Its last output:\n{why}")


def test_last_words_after_another_log(server, volcano, make_mount):
    """A process reads the log of a replica that did not fail, and later the log of the replica that
    failed. `why` has the last words once the second log has arrived."""
    kx = make_mount(server, options="capture=none")
    job = kx.submit(harness.app("true", num_replicas=2))
    pods = volcano.start(job.id)
    for pod, line in zip(pods, ("zero\n", "one\n")):
        volcano.log(pod).append(line)
    volcano.finish(pods[1], 3)
    volcano.finish(pods[0])
    assert job.read("wait") == "FAILED\n"
    assert job.log() == b"zero\n"
    assert job.status()["last_words"] == "" and "printed nothing" not in job.read("why")
    assert job.log("main-1") == b"one\n"
    harness.wait_for(lambda: job.status()["last_words"] == "one", what="the last words")


def test_lost_node(server, volcano, job):
    """A node does not report. Later the node is back."""
    (pod,) = volcano.pods(job.id)
    edit_pod(server, pod, lambda tree: tree["status"].update(conditions=[
        {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-22T10:00:00Z"}]))
    until_why(job, "main-0: its node node-1 has not reported since 2026-11-22T10:00:00Z. Until the node returns or is "
                   "removed from the cluster, kxfs can't know whether the replica still runs.\n")
    edit_pod(server, pod, lambda tree: tree["metadata"].update(deletionTimestamp=st.now()))
    harness.wait_for(lambda: "and the pod is marked for eviction" in job.read("why"))
    assert job.status()["reason"] == "NodeLost"
    volcano.run(pod)
    edit_pod(server, pod, lambda tree: (tree["status"].update(conditions=[]), tree["metadata"].pop("deletionTimestamp")))
    until_why(job, "")


def test_ended_by_a_policy(volcano, job):
    """The policy TaskCompleted -> RestartJob ends a job that has no attempt left, although no pod has failed."""
    volcano.set_phase(job.id, "Restarting", retryCount=3)
    volcano.finish(volcano.pods(job.id)[0], 0)
    volcano.set_phase(job.id, "Failed")
    harness.wait_for(lambda: job.state() == "FAILED")  # if the watch of pods was faster, the job is SUCCEEDED first
    until_why(job, "The job failed because of a policy in its own spec. main-0 ended with exit code 0. Retries used: 2; "
                   "max_retries is 0. Its output is in main-0/log.\n")


# --- Hostile texts ----------------------------------------------------------------------------
# Texts from outside that could affect a terminal or break a format are shown in a harmless form.

EVIL = "bad\x1b[31m\x07\x7f\u009b2J\r\nnext\tline"
APP = harness.app("true")


def shown(kx, *parts):
    """Return the contents of a file. Check that they are harmless."""
    data = (kx / "/".join(parts)).read_bytes()
    harmless(data)
    return data.decode()


def harmless(data):
    text = data.decode()  # decode() fails if DATA is not UTF-8
    assert not [c for c in text if (c < " " and c not in "\n\t") or "\x7f" <= c <= "\x9f"], data


def all_of(kx, job):
    for name in ("state", "why", "manifest.yaml", "main-0/state", "main-0/status"):
        shown(kx, "jobs", job, name)
    status = yaml.safe_load(shown(kx, "jobs", job, "status"))
    assert json.loads(shown(kx, "jobs", job, "status.json"))["roles"] == status["roles"]
    for name in ("info", "log", "metrics"):
        shown(kx, ".kxfs", name)
    return status


def test_objects(kx, server, volcano):
    job = kx.submit(APP)
    (pod,) = volcano.pods(job.id)
    changes = harness.popen(["cat", str(kx / "changes")], stdout=-1)
    volcano.wait_reason(pod, "Evil" + EVIL, EVIL)
    volcano.set_phase(job.id, "Pending" + EVIL)
    harness.wait_for(lambda: "Evil" in kx.read("jobs", job.id, "status") and job.status()["phase"].startswith("Pendingbad"))
    status = all_of(kx, job.id)
    assert status["roles"][0]["replicas"][0]["message"].startswith("bad\x1b[31m\x07")
    # The text is not even UTF-8. A server would not send that, but a proxy might.
    tree = server.store.find(st.PODS, "test", pod).tree()
    tree["metadata"]["resourceVersion"] = str(server.store.version + 1)
    state = {"waiting": {"reason": "Invalid@@", "message": "m@@"}}
    tree["status"]["containerStatuses"][0]["state"] = state
    event = json.dumps({"type": "MODIFIED", "object": tree}).encode().replace(b"@@", b"\xff\xe2\x82\x9b")
    server.inject(event + b"\n", verb="watch", resource="pods")
    harness.wait_for(lambda: b"Invalid" in (kx / f"jobs/{job.id}/status").read_bytes())
    all_of(kx, job.id)
    job.cancel()
    harness.kill(changes.pid)
    harmless(changes.communicate()[0])


def test_refusals(kx, server):
    body = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 400,
                       "reason": "BadRequest", "message": "@@" + EVIL}).encode()
    server.faults.add("reply", reply=replies.Reply(400, body.replace(b"@@", b"\xff\x9b")), verb="create")
    assert harness.err_of(kx.write, "submit/app.yaml", APP) == "EINVAL"
    assert "next line" in error_of(kx, "app.yaml")
    shown(kx, "submit", "app.yaml.error")
    # A reply that does not come from the API server proves nothing about the job, so kxfs retries.
    server.faults.add("reply", reply=replies.Reply(400, b"\xff\x9b" + EVIL.encode()), verb="create")
    kx.write("submit/app.yaml", APP)
    assert "next line" in shown(kx, ".kxfs", "log")


def deep_wrapper(depth):
    """Return an AppWrapper with an object that is nested DEPTH deep. API servers don't check such objects."""
    deep = json.loads('{"a":' * depth + "1" + "}" * depth)
    return {"metadata": {"name": "deep", "namespace": "test"}, "spec": {"resources": {"GenericItems": [
        {"generictemplate": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": deep}}]}}}


def read_info(kx):
    return yaml.safe_load(kx.read(".kxfs", "info"))


def passed_over(kx):
    return read_info(kx)["passed_over"]


@pytest.mark.parametrize("when", ["before", "while"])
def test_deep_object(make_mount, server, when):
    """Any user can write an object that is nested too deep. It does not stop a mount: kxfs skips it, names it, and
    counts it until it is deleted."""
    server.uninstall(*st.VOLCANO)
    server.install(st.APPWRAPPERS)
    mcad = FakeMcad(server)
    if when == "before":
        server.store.add(st.APPWRAPPERS, deep_wrapper(300))
    kx = make_mount(server, source="mcad:test")
    if when == "while":
        server.store.add(st.APPWRAPPERS, deep_wrapper(300))
    harness.wait_for(lambda: passed_over(kx) == 1)
    assert read_info(kx)["connected"] is True
    job = kx.submit(APP)
    mcad.dispatch(job.id)
    mcad.start(job.id)
    job.until("RUNNING")
    assert kx.ls("jobs") == [job.id]
    assert kx.read(".kxfs", "log").count("kxfs does not show the AppWrapper deep: it is nested too deeply") == 1
    server.store.remove(st.APPWRAPPERS, "test", "deep")
    harness.wait_for(lambda: passed_over(kx) == 0)


def test_large_object(make_mount, server, volcano, monkeypatch):
    """kxfs skips a pod with more than a megabyte of "<", because Go expands that to more than six
    megabytes. All jobs are shown."""
    real = st.encode
    monkeypatch.setattr(st, "encode", lambda resource, obj: real(resource, obj).replace(b"<", b"\\u003c"))
    server.store.add(st.PODS, {
        "metadata": {"name": "large", "namespace": "test", "labels": {"volcano.sh/job-name": "x"}, "ownerReferences": [
            {"apiVersion": "no.such/v1", "kind": "X", "name": "y", "uid": "<" * 1_420_000}]},
        "spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Pending"}})
    kx = make_mount(server)
    job = kx.submit(APP)
    volcano.start(job.id)
    job.until("RUNNING")
    assert passed_over(kx) == 1
    assert "kxfs does not show the Pod large: it is too large" in kx.read(".kxfs", "log")


def test_events_of_a_group_that_comes_late(server, make_mount):
    """Many other events do not displace the events of a PodGroup whose list is slow."""
    waiting = Waiting(server)
    server.store.change(st.PODGROUPS, "test", waiting.group.name,
                        lambda tree: tree["metadata"].update(annotations={"long": os.urandom(40000).hex()}))
    for i in range(520):
        alien = event(waiting.job, "Deployment", "scaled", "Scaled", name=f"x{i}")
        alien["involvedObject"].update(name=f"x{i}", uid=str(uuid.uuid4()))
        server.store.add(st.EVENTS, alien)
    server.faults.add("slow", verb="list", resource="podgroups", amount=8000, delay=0.1)
    kx = make_mount(server)
    harness.wait_for(lambda: why(kx) == WHY_FULL, what="why")
    harness.wait_for(lambda: (kx / "jobs/gang/events").exists(), what="events")
    assert FULL in kx.read("jobs/gang/events")


def test_last_words_of_a_log_that_is_not_captured(server, volcano, make_mount):
    """`wait` does not wait for a log that is not captured. `why` has the last words after a process has read the
    log."""
    kx = make_mount(server, options="capture=none")
    job = kx.submit(harness.app("true"))
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("one\n")
    volcano.finish(pod, 3)
    begin = time.monotonic()
    assert job.read("wait") == "FAILED\n"
    assert time.monotonic() < begin + 4 and job.status()["last_words"] == ""
    assert job.log() == b"one\n"
    harness.wait_for(lambda: job.status()["last_words"] == "one", what="the last words")
