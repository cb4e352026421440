# SPDX-License-Identifier: MIT
"""Mounts of a cluster with AppWrappers and Kueue: recordings of a real cluster; positions in the queue, which kxfs
requests only while a process reads them; `queues/`; ctl through the Workload; mounts with missing rights; clusters
without Kueue. tests/unit/spec/kinds/test-stories.c checks everything else in each recording."""

import contextlib
import json
import time

import harness
import kinds
import pytest
import recordings
import replies
import store as st
import watching
import yaml
from fakes import FakeJob, FakeJobSet
from harness import actions, write_ctl
from preload import Clock

KINDS = {"jobset": st.JOBSETS, "appwrapper": st.NEW_APPWRAPPERS, "job": st.BATCH_JOBS}
SCENARIOS = recordings.scenarios("appwrappers", ("kueue", "kueue_v014"))
WORKLOAD = "of-app-1a2b3"
IN_LINE = ["suspend", "queue NAME", "priority CLASS"]  # the actions that ctl offers for a waiting job
OPENED = "Kueue admits it when the queue is opened again."
RESUME = " To resume the job, write \"resume\" to its file ctl; to end the job, remove its directory."
ACTIVE = f"It resumes when spec.active of its Workload is set to true again.{RESUME}"


def kueue_of(scenario):
    return st.OLD_KUEUE if scenario.startswith("kueue_v014") else st.KUEUE


@pytest.fixture
def make(server, make_mount):
    """make(SCENARIO, seen=True, **kwargs) returns a mount of a cluster with the Kueue of this recording. SEEN: the user
    has the right to see ClusterQueues."""
    def make(scenario="kueue_appwrapper_success", seen=True, **kwargs):
        server.uninstall(*st.VOLCANO)
        server.install(st.NEW_APPWRAPPERS, *kueue_of(scenario))
        if not seen:
            server.forbidden.append({"resource": "clusterqueues"})
        return make_mount(server, source="appwrapper:test", **kwargs)

    return make


def load(server, scenario, until=lambda step: False):
    """Play a recording up to the first step for which UNTIL is true. Return the remaining steps."""
    resources = (st.NEW_APPWRAPPERS, st.PODS, *kueue_of(scenario))
    steps = recordings.Recording(scenario, resources=resources).steps
    for i, step in enumerate(steps):
        recordings.apply(server.store, step)
        if until(step):
            return steps[i + 1:]
    return []


def says(text):
    """Return a function that is true for a step once two things have happened. The controller has
    acted on the job `app`. The Workload of this job has a condition with the message TEXT, or an
    admission check called TEXT."""
    has = {"text": False, "phase": False}

    def until(step):
        name, status = step.tree["metadata"]["name"], step.tree.get("status", {})
        if step.tree["kind"] == "Workload" and name.startswith("appwrapper-app-"):
            told = [c["message"] for c in status.get("conditions", [])
                    if c["status"] != "True" or c["type"] == "Evicted"]
            checks = [c["name"] for c in status.get("admissionChecks", [])]
            has["text"] = any(text in message for message in told) or text in checks
        elif step.tree["kind"] == "AppWrapper" and name == "app":
            has["phase"] = "phase" in status
        return all(has.values())
    return until


def why(kx, expected, job="app"):
    def told():
        with contextlib.suppress(FileNotFoundError):  # the job is not shown yet
            return kx.read("jobs", job, "why")
        return None

    try:
        harness.wait_for(lambda: told() == expected + "\n")
    except AssertionError:
        assert told() == expected + "\n"
        raise


def info(kx):
    return yaml.safe_load(watching.known(kx))


def full(cluster_queue, *sets):
    """Return the text of `why` for a job without quota. It quotes Kueue's message about the pod SETS."""
    lacks = {"main": "100m", "app-0": "50m", "app-1": "100m"}
    return f"it has no quota in queue team (cluster queue {cluster_queue}). Kueue: \"" + "; ".join(
        f"couldn't assign flavors to pod set {name}: insufficient unused quota for cpu in flavor default-flavor, "
        f"{lacks[name]} more needed" for name in sets or ("app-0", "app-1")) + "\""


# --- recordings of a real cluster ---


@pytest.mark.parametrize("scenario, until, state, reason, text", [
    ("kueue_appwrapper_quota_wait", "more needed", "PENDING", "Queued", f"The job waits: {full('CQ')}."),
    ("kueue_v014_appwrapper_quota_wait", "more needed", "PENDING", "Queued", f"The job waits: {full('CQ')}."),
    ("kueue_appwrapper_never_fits_observability", "maximum capacity", "PENDING", "QueueTooSmall",
     "The job waits: it has no quota in queue team (cluster queue CQ). Kueue: \"couldn't assign "
     "flavors to pod set app-0: insufficient quota for cpu in flavor default-flavor, previously "
     "considered podsets requests (0) + current podset request (500m) > maximum capacity (100m)\". "
     "Submit the job to another queue, or request less."),
    ("kueue_appwrapper_no_localqueue", "LocalQueue team doesn't exist", "PENDING", "Inadmissible",
     "The job waits: it has no quota in queue team. Kueue: \"LocalQueue team doesn't exist\"."),
    ("kueue_appwrapper_no_clusterqueue", "ClusterQueue", "PENDING", "NoQueue",
     "The job waits: queue team belongs to cluster queue CQ, which does not exist. Create the "
     "cluster queue, or submit the job to another queue."),
    ("kueue_appwrapper_localqueue_hold", "LocalQueue team is inactive", "PENDING", "QueueStopped",
     f"The job waits: queue team is stopped (Hold). {OPENED}"),
    ("kueue_appwrapper_clusterqueue_hold", "is inactive", "PENDING", "QueueStopped",
     f"The job waits: cluster queue CQ (of queue team) is stopped (Hold). {OPENED}"),
    ("kueue_v014_appwrapper_clusterqueue_drain", "is inactive", "PENDING", "QueueStopped",
     f"The job waits: cluster queue CQ (of queue team) "
     f"is stopped (HoldAndDrain); its cluster queue was drained at 2026-11-22T06:32:12Z. {OPENED}"),
    ("kueue_appwrapper_check_pending", "check-p", "PENDING", "AdmissionCheckPending",
     "The job waits: it has quota in queue team (cluster queue CQ) and waits for admission check check-p."),
    ("kueue_appwrapper_check_rejected", "is deactivated due to AdmissionCheck", "CANCELLED", "AdmissionCheckRejected",
     "The job is suspended: it was rejected by an admission check. "
     "Kueue: \"The workload is deactivated due to AdmissionCheck in "
     "Rejected state: \"check-r\" (no nodes of this kind can be "
     "had)\". Kueue will not admit it again: to run it again, copy its manifest.yaml into submit/."),
    ("kueue_appwrapper_preempted", "more needed", "PENDING", "Queued",
     f"The job waits: {full('CQ')}; it was preempted at 2026-11-22T06:20:55Z."),
    ("kueue_appwrapper_deactivated", "The workload is deactivated", "RUNNING", "Deactivated",
     f"The job is being stopped: its Workload appwrapper-app-56912 was deactivated. {ACTIVE}"),
])
def test_why(server, make, scenario, until, state, reason, text):
    """Check a mount that runs from the start, and a later mount that may resume the job. Then play the rest of the
    recording."""
    cluster_queue = scenario.removeprefix("kueue_").replace("_", "-")
    text = text.replace("CQ", cluster_queue)
    kx = make(scenario)
    left = load(server, scenario, says(until))
    for mount, expected in ((kx, text.removesuffix(RESUME)), (make(scenario, options="cancel=all"), text)):
        why(mount, expected)
        job = harness.Job(mount, "app")
        harness.wait_for(lambda job=job: job.state() == state, what=f"state {state}")  # its pods may report the state later
        status = job.status()
        assert (status["state"], status["reason"], status["queue"]) == (state, reason, "team")
        assert status["evictions"] == any(word in scenario for word in ("preempted", "drain", "deactivated", "rejected"))
        assert status["queue_position"] is None and text.startswith(text.split(": ")[0] + ": " + status["message"])
    for step in left:
        if step.kind == "DELETED" and step.tree["kind"] == "AppWrapper":
            break
        recordings.apply(server.store, step)
    end = server.store.find(st.NEW_APPWRAPPERS, "test", "app").tree()["status"]["phase"]
    if end == "Terminating":
        harness.Job(kx, "app").until("SUCCEEDED", "CANCELLED")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_whole_recording(server, make, scenario):
    """Play the recording to its end. Whatever Kueue has reported before, a finished job is shown as without Kueue."""
    kx = make(scenario)
    over = []

    def ended(step):
        phase = step.tree.get("status", {}).get("phase")
        over.extend([phase] if step.resource.plural == "appwrappers" and step.tree["metadata"]["name"] == "app"
                    and phase in ("Succeeded", "Failed") else [])
        return bool(over)

    left = load(server, scenario, ended)
    if over:
        harness.wait_for(lambda: "app" in kx.ls("jobs"), what="the job to be shown")
        # until() would fail, because the job may have been CANCELLED before it became active again.
        harness.wait_for(lambda: harness.Job(kx, "app").state() == over[0].upper(), what=over[0])
        assert "queue" not in kx.read("jobs/app/why")
    for step in left:
        recordings.apply(server.store, step)
    gone = server.store.find(st.NEW_APPWRAPPERS, "test", "app") is None
    harness.wait_for(lambda: "app" not in kx.ls("jobs") or not gone, what="the job to leave")


# For batch Jobs: scenario -> the reasons of `app` in order, and its last state.
JOBS = {"kueue_job_success": (["Completed"], "SUCCEEDED"), "kueue_job_fail": (["Error"], "FAILED"),
        "kueue_job_quota_wait": (["Queued", "Completed"], "SUCCEEDED")}


@pytest.mark.parametrize("scenario", sorted(JOBS))
def test_recording_of_jobs(server, make_mount, scenario):
    """Recordings of Jobs, on a mount of Jobs and on a mount of all kinds: each message of Kueue about the Job is
    shown, and a waiting job is never CANCELLED."""
    server.uninstall(*st.VOLCANO)
    server.install(st.BATCH_JOBS, *st.KUEUE)
    mounts = [make_mount(server, source=source) for source in ("job:test", "test")]
    reasons, end = JOBS[scenario]
    for step in recordings.Recording(scenario, resources=(st.BATCH_JOBS, st.PODS, *st.KUEUE)).steps:
        if step.kind == "DELETED":
            break
        recordings.apply(server.store, step)
        conditions = {c["type"]: c for c in step.tree.get("status", {}).get("conditions", [])}
        waits = conditions.get("QuotaReserved", {})
        if waits.get("status") == "False":
            for kx in mounts:
                why(kx, f"The job waits: {full('job-quota-wait', 'main')}.")
                status = harness.Job(kx, "app").status()
                assert (status["state"], status["reason"], status["queue"]) == ("PENDING", reasons[0], "team")
        for kx in mounts:
            assert "CANCELLED" not in kx.read("list")
    for kx in mounts:
        job = harness.Job(kx, "app")
        job.until(end)
        harness.wait_for(lambda job=job: job.status()["reason"] == reasons[-1], what="its reason")
        harness.wait_for(lambda job=job: job.status()["cluster_queue"], what="its Workload")
        status = job.status()
        assert (status["kind"], status["queue"], status["evictions"]) == ("job", "team", 0)
        assert status["cluster_queue"] == scenario.removeprefix("kueue_").replace("_", "-")
        assert status["flavors"] == [{"resource": "cpu", "flavor": "default-flavor"}]
        assert "queue" not in job.read("why")


def test_drained_job(server, make_mount):
    """An evicted Job waits. The Workload is recorded; the Job itself was not recorded."""
    scenario = "kueue_v014_job_clusterqueue_drain"
    server.uninstall(*st.VOLCANO)
    server.install(st.BATCH_JOBS, *st.OLD_KUEUE)
    kx = make_mount(server, source="job:test")
    steps = recordings.Recording(scenario, resources=st.OLD_KUEUE).steps
    owner = next(s.tree for s in steps if s.tree["kind"] == "Workload")["metadata"]["ownerReferences"][0]
    server.store.put(st.BATCH_JOBS, {
        "metadata": {"name": "app", "namespace": "test", "uid": owner["uid"], "creationTimestamp": st.now(),
                     "labels": {"kueue.x-k8s.io/queue-name": "team"}},
        "spec": {"suspend": True, "completions": 1, "parallelism": 1, "completionMode": "Indexed",
                 "template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}},
        "status": {"conditions": [{"type": "Suspended", "status": "True", "reason": "JobSuspended"}]}})
    for step in steps:
        recordings.apply(server.store, step)
        if "is inactive" in json.dumps(step.tree.get("status", {})):
            break
    why(kx, f"The job waits: cluster queue v014-job-clusterqueue-drain (of queue team) is stopped (HoldAndDrain); its cluster queue was drained "
            f"at {evicted(server)}. {OPENED}")
    status = harness.Job(kx, "app").status()
    assert (status["state"], status["reason"], status["evictions"]) == ("PENDING", "QueueStopped", 1)


def evicted(server):
    (workload,) = server.store.objects(st.OLD_KUEUE[0])[0]
    return next(c["lastTransitionTime"] for c in workload.tree()["status"]["conditions"] if c["type"] == "Evicted")


def test_manifest_again(server, make_mount):
    """A JobSet that is submitted again lacks what Kueue has added to the first one, because Kueue
    would not start it with these additions."""
    server.uninstall(*st.VOLCANO)
    server.install(st.JOBSETS, *st.KUEUE)
    kx = make_mount(server, source="jobset:test")
    for step in recordings.Recording("kueue_jobset_success", resources=(st.JOBSETS, st.PODS, *st.KUEUE)).steps:
        if step.kind != "DELETED":
            recordings.apply(server.store, step)
    job = harness.Job(kx, "app")
    harness.wait_for(lambda: "SUCCEEDED" in kx.read("list"), what="the job's end")
    assert "kueue.x-k8s.io/podset: trainer" in job.read("manifest.yaml")
    kx.write("submit/again.yaml", job.read("manifest.yaml"))
    again = server.store.find(st.JOBSETS, "test", kx.job_of("again.yaml").id).tree()
    template = again["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert "kueue.x-k8s.io" not in json.dumps(template) and "suspend" not in again["spec"]
    assert again["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"


def test_owner(server, make_mount):
    """The JobSet of a TrainJob waits with the TrainJob's Workload. Its `wait` does not end as CANCELLED."""
    server.uninstall(*st.VOLCANO)
    server.install(st.JOBSETS, *st.KUEUE)
    kx = make_mount(server, source="jobset:test", options="cancel=all")
    owner = [{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "t", "uid": "t-1", "controller": True}]
    server.store.add(st.JOBSETS, {
        "metadata": {"name": "t", "namespace": "test", "ownerReferences": owner},
        "spec": {"suspend": True, "replicatedJobs": []},
        "status": {"conditions": [{"type": "Suspended", "status": "True", "reason": "SuspendedJobs"}]}})
    why(kx, "The job waits until its owner, TrainJob t, lets it run.", "t")
    waiting = [{"type": "QuotaReserved", "status": "False", "reason": "Inadmissible", "message": "LocalQueue team doesn't exist"}]
    server.store.add(st.WORKLOADS, {
        "metadata": {"name": "trainjob-t", "namespace": "test", "ownerReferences": owner},
        "spec": {"queueName": "team"}, "status": {"conditions": waiting}})
    why(kx, "The job waits: it has no quota in queue team. Kueue: \"LocalQueue team doesn't exist\".", "t")
    job = harness.Job(kx, "t")
    assert job.state() == "PENDING" and job.status()["queue"] == "team" and actions(job) == []
    with pytest.raises(OSError):
        write_ctl(job, "resume")


@pytest.mark.parametrize("kind", ["jobset", "job"])
def test_grace_of_evicted_pods(server, make_mount, kind):
    """Kueue suspends an evicted job immediately, but the pods run until their grace period is over. Until then the
    job is shown as running. Then it waits, and later runs as another attempt."""
    server.uninstall(*st.VOLCANO)
    resource = KINDS[kind]
    server.install(resource, *st.KUEUE)
    jobsets = (FakeJobSet if kind == "jobset" else FakeJob)(server)
    kx = make_mount(server, source=f"{kind}:test", options="queue=team")
    job = kx.submit(harness.app("true", num_replicas=2))

    def tell(suspend, **conditions):
        server.store.change(resource, "test", job.id, lambda tree: tree["spec"].update(suspend=suspend))
        jobsets.say(job.id, *(["Suspended"] if suspend else []))
        if conditions.get("Evicted"):
            server.store.change(st.WORKLOADS, "test", "one", lambda tree: tree["status"].update(
                schedulingStats={"evictions": [{"reason": "Preempted", "count": 1}]}))
        server.store.change(st.WORKLOADS, "test", "one", lambda tree: tree["status"].update(conditions=[
            {"type": kind, "status": str(holds), "reason": "Preempted", "message": "Preempted to accommodate a workload "
             "due to prioritization in the ClusterQueue", "lastTransitionTime": "2026-11-22T06:20:55Z"}
            for kind, holds in conditions.items()]))

    def row():
        return dict(zip(("state", "queue", "ready"), (kx.read("list").splitlines()[1].split()[i] for i in (1, 3, 4)), strict=True))

    server.store.add(st.WORKLOADS, {
        "metadata": {"name": "one", "namespace": "test", "ownerReferences": [{
            "apiVersion": resource.api_version, "kind": resource.kind, "name": job.id, "controller": True,
            "uid": server.store.find(resource, "test", job.id).uid}]},
        "spec": {"queueName": "team", "active": True}, "status": {}})
    tell(False, QuotaReserved=True, Admitted=True)
    jobsets.start(job.id)
    harness.wait_for(lambda: row() == {"state": "RUNNING", "queue": "team", "ready": "2/2"}, what="that it runs")
    for pod in jobsets.pods(job.id):
        server.store.change(st.PODS, "test", pod, lambda tree: tree["metadata"].update(
            deletionTimestamp=st.now(), deletionGracePeriodSeconds=30))
    tell(True, QuotaReserved=True, Admitted=True, Evicted=True)
    harness.wait_for(lambda: "it was preempted" in kx.read("jobs", job.id, "why"), what="why")
    assert row() == {"state": "RUNNING", "queue": "team", "ready": "2/2"}
    jobsets.remove_pods(job.id)
    tell(True, QuotaReserved=False, Admitted=False, Evicted=True)
    harness.wait_for(lambda: row() == {"state": "PENDING", "queue": "team", "ready": "0/2"}, what="that it waits")
    assert "it was preempted" in job.read("why") and job.status()["evictions"] == 1
    time.sleep(1.1)  # kxfs orders pods by their creation time, which has whole seconds
    tell(False, QuotaReserved=True, Admitted=True, Evicted=False)
    for index in range(2 if kind == "job" else 0):
        jobsets.run(jobsets.retry(job.id, index))
    if kind == "job":
        harness.wait_for(lambda: [job.replica(f"main-{i}")["attempt"] for i in range(2)] == [1, 1], what="the next attempt")
        assert job.until("RUNNING") == "RUNNING"


def test_waiting_for_what_is_put_out_for_good(server, make):
    """`wait` ends for a job that Kueue does not requeue, and `why` has the remedy."""
    kx = make(options="cancel=all")
    scenario = "kueue_appwrapper_check_rejected"
    until = says("is deactivated due to AdmissionCheck")
    steps = load(server, scenario, lambda step: until(step) or step.tree["kind"] == "Workload")
    harness.wait_for(lambda: "app" in kx.ls("jobs"), what="the job")
    job = harness.Job(kx, "app")
    with open(job / "wait", "rb") as file:
        waiting = harness.popen(["cat"], stdin=file, stdout=-1)
    for step in steps:
        recordings.apply(server.store, step)
        if until(step):
            break
    assert waiting.communicate(timeout=harness.LIMIT)[0] == b"CANCELLED\n"
    assert kx.read("jobs/app/why").endswith("Kueue will not admit it again: to run it again, copy its manifest.yaml into submit/.\n")
    assert actions(job) == []
    assert harness.err_of(write_ctl, job, "resume") == "EINVAL"
    assert "Kueue evicted the job permanently" in kx.read(".kxfs", "log")


# --- positions ---


def summary(server, *jobs, ahead=0):
    """Return a reply of the visibility API with JOBS in order, after AHEAD jobs of other namespaces."""
    return {"kind": "PendingWorkloadsSummary", "items": [
        {"metadata": {"name": f"appwrapper-{name}-01234", "namespace": "test", "ownerReferences": [
            {"kind": "AppWrapper", "name": name, "uid": server.store.find(st.NEW_APPWRAPPERS, "test", name).uid}]},
         "priority": 0, "localQueueName": "team", "positionInClusterQueue": ahead + i, "positionInLocalQueue": i}
        for i, name in enumerate(jobs)]}


def asked(server):
    return server.seen(subresource="pendingworkloads")


def place(kx, job, expected):
    harness.wait_for(lambda: json.loads(kx.read("jobs", job, "status.json"))["queue_position"] == expected,
                     what=f"place {expected}", step=0.2)


def test_place_in_list(server, make):
    """If a process only reads `list`, kxfs requests the positions, with one request for all jobs of a queue. Each
    further read of `list` may cause one more request."""
    scenario = "kueue_appwrapper_quota_wait"
    load(server, scenario, lambda step: step.tree["kind"] == "Workload" and "third" in step.tree["metadata"]["name"])
    server.api.places["team"] = summary(server, "app", "third", ahead=1)
    kx = make(scenario)
    harness.wait_for(lambda: info(kx)["kueue"] == kueue_of(scenario)[0].api_version, what="Kueue")

    def lines():
        return {line.split()[0]: line for line in kx.read("list").splitlines()}
    assert asked(server) == [] and "team)" not in lines()["app"], "reading does not wait"
    harness.wait_for(lambda: lines()["app"].endswith(" (2 in team)") and lines()["third"].endswith(" (3 in team)"),
                     what="the places", step=0.2)
    assert lines()["app"].split()[7] == harness.Job(kx, "app").status()["reason"]
    server.api.places["team"] = summary(server, "app", "third")
    harness.wait_for(lambda: lines()["app"].endswith(" (1 in team)"), what="the next place", step=0.2)
    assert {req.path for req in asked(server)} == {asked(server)[0].path}


@pytest.mark.parametrize("scenario", ["kueue_appwrapper_quota_wait", "kueue_v014_appwrapper_quota_wait"])
def test_place(server, make, scenario):
    """kxfs requests a position only when a process reads it. The first job in the queue has position 1. The reason of
    the job does not change."""
    load(server, scenario, lambda step: step.tree["kind"] == "Workload" and "third" in step.tree["metadata"]["name"])
    server.api.places["team"] = summary(server, "app", "third", ahead=1)
    kx = make(scenario)
    harness.wait_for(lambda: info(kx)["kueue"] == kueue_of(scenario)[0].api_version, what="Kueue")
    harness.run(["ls", "-l", str(kx / "jobs/app")])
    begin = time.monotonic()
    assert asked(server) == [], "nobody has read"
    assert harness.Job(kx, "app").status()["queue_position"] is None, "reading does not wait"
    place(kx, "app", 2)
    place(kx, "third", 3)
    harness.wait_for(lambda: kx.read("jobs/app/why").endswith(" Its position in the queue is 2.\n"), what="why")
    server.api.places["team"] = summary(server, "app")
    place(kx, "app", 1)
    place(kx, "third", None)
    # kxfs sends at most one request in 5 s. Request number i arrives no earlier than 5 s times i, but may be late.
    times = [req.at - begin for req in asked(server)]
    assert all(at > 4.9 * i for i, at in enumerate(times)), times
    assert {req.code for req in asked(server)} - {None} == {200}, "one may be under way"


@pytest.mark.waits
@pytest.mark.parametrize("kind", ["jobset", "appwrapper"])
def test_moved(make_mount, server, kind):
    """A user who has named a wrong queue corrects the label. Labels are metadata, so the generation of the object
    does not change."""
    resource = st.JOBSETS if kind == "jobset" else st.NEW_APPWRAPPERS
    server.uninstall(*st.VOLCANO)
    server.install(resource, *st.KUEUE)
    pods = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    spec = {"suspend": True, "components": []} if kind == "appwrapper" else {"suspend": True, "replicatedJobs": [
        {"name": "main", "replicas": 1, "template": {"spec": {"completions": 1, "parallelism": 1, "template": pods}}}]}
    server.store.add(resource, {"metadata": {"name": "app", "namespace": "test", "generation": 1, "labels": {
        "kueue.x-k8s.io/queue-name": "typo"}}, "spec": spec, "status": {}})
    kx = make_mount(server, source=f"{kind}:test")
    job = harness.Job(kx, "app")
    assert job.status()["queue"] == "typo"
    server.store.change(resource, "test", "app", lambda tree: tree["metadata"]["labels"].update(
        {"kueue.x-k8s.io/queue-name": "team"}))
    harness.wait_for(lambda: job.status()["queue"] == "team")


def test_place_of_nobody(server, make):
    """When no process reads any more, kxfs stops its requests, and does not show an old position later."""
    load(server, "kueue_appwrapper_quota_wait", says("more needed"))
    server.api.places["team"] = summary(server, "app")
    kx = make("kueue_appwrapper_quota_wait")
    place(kx, "app", 1)
    time.sleep(40)
    n = len(asked(server))
    time.sleep(8)
    assert len(asked(server)) == n <= 9
    assert json.loads(kx.read("jobs/app/status.json"))["queue_position"] is None
    place(kx, "app", 1)


def test_place_refused(server, make):
    """Without the right to read positions, kxfs shows none, .kxfs/info reports the missing right,
    and kxfs does not repeat the request."""
    server.forbidden.append({"subresource": "pendingworkloads"})
    load(server, "kueue_appwrapper_quota_wait", says("more needed"))
    kx = make("kueue_appwrapper_quota_wait")
    harness.wait_for(lambda: kx.read("jobs/app/status") and info(kx)["refused"], what="the refusal", step=0.2)
    (refused,) = info(kx)["refused"]
    assert (refused["verb"], refused["resource"]) == (
        "get", "localqueues/pendingworkloads.visibility.kueue.x-k8s.io")
    assert "queue_position" in refused["cost"] and "forbidden" in refused["answer"]
    for _ in range(3):
        assert harness.Job(kx, "app").status()["queue_position"] is None
    assert len(asked(server)) == 1


@pytest.mark.parametrize("gone", [False, True])
def test_place_without_visibility(server, make_mount, gone):
    """If there is no visibility API or it is unreachable, kxfs shows no position and reports no error."""
    load(server, "kueue_appwrapper_quota_wait", says("more needed"))
    server.uninstall(*st.VOLCANO)
    server.install(st.NEW_APPWRAPPERS, *(r for r in st.KUEUE if gone or r is not st.PLACES))
    kx = make_mount(server, source="appwrapper:test")
    if gone:
        server.uninstall(st.PLACES)
    for _ in range(3):
        assert harness.Job(kx, "app").status()["queue_position"] is None
    assert info(kx)["refused"] == [] and len(asked(server)) <= gone


def test_kueue_is_down(server, make):
    """If Kueue does not run, no job is admitted, whatever capacity is free. Kueue itself serves the positions, so a
    request for them shows that Kueue is down."""
    scenario = "kueue_appwrapper_quota_wait"
    load(server, scenario, says("more needed"))
    server.api.places["team"] = summary(server, "app")
    kx = make(scenario)
    down = server.faults.add("reply", times=1000, reply=replies.unavailable(), subresource="pendingworkloads")
    waits = f"The job waits: {full('appwrapper-quota-wait')}"
    why(kx, f"{waits}; the server can't reach Kueue. While Kueue is down, it admits no jobs.")
    server.faults.clear(down)
    why(kx, f"{waits}. Its position in the queue is 1.")


# --- queues/ ---


def queue(kx):
    return yaml.safe_load(kx.read("queues/team/status"))


@pytest.mark.parametrize("scenario", ["kueue_appwrapper_quota_wait", "kueue_v014_appwrapper_quota_wait"])
def test_queues(server, make, scenario):
    load(server, scenario, lambda step: step.tree["kind"] == "LocalQueue"
         and step.tree.get("status", {}).get("pendingWorkloads") == 2)
    for resource in ("workloads", "localqueues", "clusterqueues"):
        server.faults.add("slow", amount=400, delay=0.1, verb="list", resource=resource)
    kx = make(scenario, options="cancel=all")
    assert kx.ls("queues") == ["team"], "they are there when kxfs has returned"
    assert "suspend" in (kx / "jobs/app/ctl").read_text().split(), "and so is what ctl needs"
    cluster_queue = scenario.removeprefix("kueue_").replace("_", "-")
    expected = {
        "name": "team", "state": "Open", "stopped_by": None, "message": "Can submit new workloads to localQueue",
        "cluster_queue": cluster_queue, "cohort": None, "strategy": "BestEffortFIFO",
        "flavors": [{"flavor": "default-flavor", "resource": "cpu", "used": "100m", "reserved": "100m",
                     "nominal": "100m", "borrowing_limit": None, "borrowed": "0"}],
        "workloads": {"pending": 2, "reserving": 1, "admitted": 1}}

    def shown():
        status = queue(kx)
        jobs = status.pop("pending"), status.pop("running")
        return status == expected and sum(jobs) == 3
    harness.wait_for(shown, what="the queue's status")


@pytest.mark.parametrize("silent", ["workloads", "localqueues", "clusterqueues"])
def test_kueue_that_does_not_come(server, make, silent):
    """If Kueue's lists don't arrive, the start waits for them only for a limited time."""
    scenario = "kueue_appwrapper_quota_wait"
    load(server, scenario, says("more needed"))
    server.faults.add("silent", times=9, verb="list", resource=silent)
    assert "app" in make(scenario).ls("jobs")


def test_queue_without_cluster_queues(server, make):
    """`queues/` works without the right to see ClusterQueues, which most users don't have."""
    scenario = "kueue_appwrapper_clusterqueue_hold"
    load(server, scenario, says("is inactive"))
    kx = make(scenario, seen=False)
    why(kx, "The job waits: queue team (cluster queue appwrapper-clusterqueue-hold) is inactive. "
            "Kueue: \"Can't submit new workloads to clusterQueue\".")
    harness.wait_for(lambda: [r["resource"] for r in info(kx)["refused"]] == ["clusterqueues.kueue.x-k8s.io"],
                     what="the refusal")
    harness.wait_for(lambda: (kx / "queues/team/status").exists(), what="the queue")
    assert {flavor["nominal"] for flavor in queue(kx)["flavors"]} == {None}
    assert queue(kx)["strategy"] is None


def test_events(server, make):
    """Kueue's events are about the Workload. kxfs shows them with those of the job."""
    load(server, "kueue_appwrapper_quota_wait", says("more needed"))
    kx = make("kueue_appwrapper_quota_wait")
    (workload,) = [w for w in server.store.objects(st.WORKLOADS)[0] if w.name.startswith("appwrapper-app-")]
    server.store.add(st.EVENTS, {
        "metadata": {"name": "e", "namespace": "test"}, "type": "Warning", "reason": "Pending", "message": "no room",
        "involvedObject": {"kind": "Workload", "name": workload.name, "uid": workload.uid},
        "eventTime": "2026-11-22T06:20:48.000000Z"})
    harness.wait_for(lambda: (kx / "jobs/app/events").exists(), what="events")
    harness.wait_for(lambda: kx.read("jobs/app/events") == (
        f"2026-11-22T06:20:48Z\tWorkload/{workload.name}\tWarning\tPending\t1\tno room\n"), what="the event")


# --- each kind that Kueue manages ---

LACKS = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default-flavor, 50m more needed"


def waits(uid, kind, name):
    """Return the Workload that Kueue creates for the job NAME, which waits for quota."""
    return {"metadata": {"name": f"{kind.name}-{name}-1a2b3", "namespace": "test", "ownerReferences": [
                {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, "name": name, "uid": uid, "controller": True}]},
            "spec": {"queueName": "team", "priority": 0, "active": True, "podSets": []},
            "status": {"conditions": [
                {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": LACKS, "lastTransitionTime": st.now()}]}}


def admitted(tree):
    tree["status"] = {
        "admission": {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "flavors": {"cpu": "spot"}}]},
        "conditions": [{"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": st.now()}
                       for kind in ("QuotaReserved", "Admitted")]}


@pytest.mark.parametrize("name", kinds.IN_KUEUE)
def test_each_kind(server, make_mount, name):
    """For a job of each kind that has a queue, kxfs shows the reason why the job waits, its
    position and its quota. ctl changes the Workload."""
    kind = kinds.KINDS[name]
    server.uninstall(*st.VOLCANO)
    server.install(kind.resource, *st.KUEUE)
    tree = kind.job(**{"kueue.x-k8s.io/queue-name": "team"})
    kind.set(tree, True)
    uid, job_name = tree["metadata"]["uid"], tree["metadata"]["name"]
    server.store.put(kind.resource, {**tree, "status": kind.suspended})
    server.store.add(st.LOCAL_QUEUES, {"metadata": {"name": "team", "namespace": "test"}, "spec": {"clusterQueue": "cq"}})
    workload = server.store.add(st.WORKLOADS, waits(uid, kind, job_name)).name
    server.api.places["team"] = {"kind": "PendingWorkloadsSummary", "items": [
        {"metadata": {"name": workload, "namespace": "test", "ownerReferences": [
            {"kind": kind.resource.kind, "name": job_name, "uid": uid}]},
         "priority": 0, "localQueueName": "team", "positionInClusterQueue": 1, "positionInLocalQueue": 1}]}
    kx = make_mount(server, source=f"{name}:test", options="cancel=all")
    job = harness.Job(kx, job_name)
    why(kx, f"The job waits: it has no quota in queue team (cluster queue cq). Kueue: \"{LACKS}\". Its position in the queue is 2.",
        job_name)
    status = job.status()
    assert (status["state"], status["reason"], status["queue"], status["queue_position"]) == ("PENDING", "Queued", "team", 2)
    assert actions(job) == IN_LINE

    write_ctl(job, "suspend")
    shown(job)
    assert job.state() == "CANCELLED" and actions(job) == ["resume"]
    write_ctl(job, "resume")
    shown(job)
    assert job.state() == "PENDING"
    assert [(plural, body["spec"]) for plural, _, body in patches(server)] == [
        ("workloads", {"active": False}), ("workloads", {"active": True})]

    server.store.change(st.WORKLOADS, "test", workload, admitted)

    def starts(tree):
        kind.set(tree, False)
        tree["status"] = kind.runs
    server.store.change(kind.resource, "test", job_name, starts)
    harness.wait_for(lambda: job.status()["cluster_queue"] == "cq" and job.status()["flavors"] and
                     job.status()["phase"] != kind.shown, what="its quota")
    assert job.status()["flavors"] == [{"resource": "cpu", "flavor": "spot"}] and "queue" not in job.read("why")


RECORDED = ("pytorchjob", "mpijob", "rayjob", "trainjob")


def recorded(server, kind):
    """Install the resources that the recordings of KIND need. Return them by the kinds of their objects."""
    server.uninstall(*st.VOLCANO)
    found = {r.kind: r for r in (st.KIND_FILES[kind], *st.KIND_PARTS[kind], st.BATCH_JOBS, st.JOBSETS, st.PODS, st.WORKLOADS)}
    server.install(*(r for r in found.values() if r is not st.PODS), *st.KUEUE)
    return found


def split(steps, fits):
    """Return two lists: the steps before the first one that FITS, and the remaining steps."""
    n = next(i for i, step in enumerate(steps) if fits(step))
    return steps[:n], steps[n:]


def reserved(step):
    return step.tree["kind"] == "Workload" and any(
        c["type"] == "QuotaReserved" and c["status"] == "True" for c in step.tree.get("status", {}).get("conditions", []))


@pytest.mark.parametrize("kind", RECORDED)
def test_recorded_kind_waits(server, make_mount, kind):
    """Recordings of jobs that wait for Kueue, in a mount of all kinds. It shows no part of a job as a job."""
    resources = recorded(server, kind)
    kx = make_mount(server, source="test")
    job = harness.Job(kx, "queued")
    waiting, runs = split(list(recordings.story(kind, "kueue-wait", resources)), reserved)
    for step in waiting:
        recordings.apply(server.store, step)
    message = next(c["message"] for step in waiting if step.tree["kind"] == "Workload"
                   for c in step.tree.get("status", {}).get("conditions", []))
    why(kx, f"The job waits: it has no quota in queue team. Kueue: \"{message}\".", "queued")
    status = job.status()
    assert (status["kind"], status["state"], status["reason"], status["queue"]) == (kind, "PENDING", "Queued", "team")
    for step in runs:
        recordings.apply(server.store, step)
        assert kx.ls("jobs") == ["queued"] and "CANCELLED" not in kx.read("list")
    harness.wait_for(lambda: job.state() == "SUCCEEDED" and job.status()["cluster_queue"] == "batch", what="its end")
    assert kx.ls("jobs") == ["queued"] and "queue" not in job.read("why")


@pytest.mark.parametrize("kind", RECORDED)
def test_recorded_kind_is_deactivated(server, make_mount, kind):
    """An administrator deactivates the Workload of a running job, and activates it again."""
    resources = recorded(server, kind)
    kx = make_mount(server, source=f"{kind}:test", options="cancel=all")
    job = harness.Job(kx, "stopped")
    before, rest = split(list(recordings.story(kind, "kueue-deactivated", resources)),
                         lambda step: step.tree["kind"] == "Workload" and step.tree["spec"].get("active") is False)
    stopped, rest = split(rest, lambda step: step.tree["kind"] == "Workload" and step.tree["spec"].get("active") is True)
    for step in before + stopped:
        recordings.apply(server.store, step)
    harness.wait_for(lambda: kx.ls("jobs") == ["stopped"] and job.state() == "CANCELLED", what="CANCELLED")
    status = job.status()
    assert (status["reason"], status["evictions"], status["queue"]) == ("Deactivated", 1, "team")
    assert "was deactivated" in job.read("why") and actions(job) == ["resume"]
    for step in rest:
        recordings.apply(server.store, step)
    harness.wait_for(lambda: job.state() in ("RUNNING", "SUCCEEDED"), what="that it runs again")
    assert "deactivated" not in job.read("why")


def test_unmanaged_kind(server, make_mount):
    """Kueue does not manage Workflows, so kxfs ignores the label of a queue on a Workflow."""
    kind = kinds.KINDS["workflow"]
    server.uninstall(*st.VOLCANO)
    server.install(kind.resource, *st.KUEUE)
    server.store.put(kind.resource, {**kind.job(**{"kueue.x-k8s.io/queue-name": "team"}), "status": kind.runs})
    kx = make_mount(server, source="test", options="cancel=all")
    harness.wait_for(lambda: kx.ls("jobs"), what="the job")
    job = harness.Job(kx, kx.ls("jobs")[0])
    assert job.status()["queue"] == "" and "queue" not in job.read("why") and actions(job) == ["suspend", "terminate"]


# --- ctl ---


def patches(server):
    """Return the patches that kxfs has requested: (resource, name, patch)."""
    return [(req.resource.plural, req.name, json.loads(req.body)) for req in server.seen(verb="patch")]


def shown(job):
    """Wait for the result of a write to ctl. The write itself returns after 5 s at most."""
    harness.wait_for(lambda: job.status()["pending_command"] is None, what="the outcome")


def phase(name):
    def until(step):
        return step.tree["kind"] == "AppWrapper" and step.tree.get("status", {}).get("phase") == name
    return until


def test_suspend_and_resume(server, make):
    """ctl deactivates and activates the Workload. The reaction of the controllers was recorded."""
    kx = make(options="cancel=all")
    left = load(server, "kueue_appwrapper_deactivated", phase("Running"))
    harness.wait_for(lambda: "app" in kx.ls("jobs"), what="the job")
    job = harness.Job(kx, "app")
    harness.wait_for(lambda: actions(job) == ["suspend"], what="its Workload")
    (workload,) = server.store.objects(st.WORKLOADS)[0]
    writer = harness.popen(["sh", "-c", f"echo suspend >{job.dir}/ctl"])
    harness.wait_for(lambda: patches(server), what="the patch")
    assert patches(server) == [
        ("workloads", workload.name, {"metadata": {"uid": workload.uid}, "spec": {"active": False}})]
    assert server.store.find(st.WORKLOADS, "test", workload.name).tree()["spec"]["active"] is False
    again = next(i for i, step in enumerate(left) if step.tree["kind"] == "Workload" and step.tree["spec"]["active"])
    for step in left[:again]:
        recordings.apply(server.store, step)
    assert writer.wait(timeout=harness.LIMIT) == 0
    why(kx, f"The job is suspended: its Workload {workload.name} was deactivated. {ACTIVE}")
    assert job.state() == "CANCELLED" and actions(job) == ["resume"]
    write_ctl(job, "resume")
    shown(job)
    assert job.state() == "PENDING" and actions(job) == IN_LINE
    assert patches(server)[1:] == [
        ("workloads", workload.name, {"metadata": {"uid": workload.uid}, "spec": {"active": True}})]
    for step in left[again:]:
        recordings.apply(server.store, step)
        if phase("Succeeded")(step):
            break
    job.until("SUCCEEDED")


@pytest.fixture(params=["jobset", "job"])
def waiting(server, make_mount, request):
    """A job that waits in its queue."""
    resource = KINDS[request.param]
    server.uninstall(*st.VOLCANO)
    server.install(resource, *st.KUEUE)
    spec = {"jobset": {"replicatedJobs": []}, "job": {"completions": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}}
    owner = server.store.add(resource, {
        "metadata": {"name": "app", "namespace": "test", "labels": {"kueue.x-k8s.io/queue-name": "team"}},
        "spec": {"suspend": True, **spec[request.param]},
        "status": {"conditions": [{"type": "Suspended", "status": "True", "reason": "SuspendedJobs"}]}})
    server.store.add(st.WORKLOADS, {
        "metadata": {"name": WORKLOAD, "namespace": "test", "ownerReferences": [
            {"kind": resource.kind, "name": "app", "uid": owner.uid, "controller": True}]},
        "spec": {"queueName": "team", "podSets": []}})
    kx = make_mount(server, source=f"{request.param}:test", options="cancel=all")
    job = harness.Job(kx, "app")
    job.resource = resource
    harness.wait_for(lambda: actions(job) == IN_LINE, what="its Workload")
    return job


@pytest.mark.parametrize("fault", [None, "lose", "cut"])
def test_suspend_in_line(server, waiting, fault):
    """A suspended job gives up its position in the queue, and gets a new one when it is resumed. This also holds if the
    server's reply is lost."""
    if fault:
        server.faults.add(fault, amount=60, verb="patch", resource="workloads")
    write_ctl(waiting, "suspend")
    shown(waiting)
    assert waiting.state() == "CANCELLED" and actions(waiting) == ["resume"]
    write_ctl(waiting, "resume")
    shown(waiting)
    assert waiting.state() == "PENDING" and actions(waiting) == IN_LINE
    assert {name for _, name, _ in patches(server)} == {WORKLOAD}


def test_no_right_to_suspend(server, waiting):
    server.forbidden.append({"verb": "patch", "resource": "workloads"})
    assert harness.err_of(write_ctl, waiting, "suspend") == "ENOTSUP"
    assert "app/ctl: suspend is refused: the job is in a Kueue queue, so kxfs has to set spec.active of the job's Workload, but this " \
        "user has no right to patch workloads.kueue.x-k8s.io; to end the job, remove its directory" in waiting.kx.read(".kxfs", "log")
    assert "may not patch workloads.kueue.x-k8s.io in namespace test" in waiting.kx.read(".kxfs", "log")
    assert waiting.state() == "PENDING" and waiting.status()["pending_command"] is None
    server.forbidden.clear()
    write_ctl(waiting, "suspend")


def obeys(server, job, **labels):
    """Let Kueue act on LABELS of a waiting job."""
    def has():
        return server.store.find(job.resource, "test", "app").tree()["metadata"]["labels"]
    wanted = {f"kueue.x-k8s.io/{key}": value for key, value in labels.items()}
    # The server records the request for a patch before it applies the patch.
    harness.wait_for(lambda: wanted.items() <= has().items(), what="its labels")
    queue = has()["kueue.x-k8s.io/queue-name"]
    server.store.change(st.WORKLOADS, "test", WORKLOAD, lambda tree: tree["spec"].update(
        queueName=queue, priority=1000 * ("priority-class" in labels),
        **({"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}}
           if "priority-class" in labels else {})))


def asks(server, job, text, n=1):
    """Start a process that writes TEXT to the ctl of JOB. Return it when N patches were requested."""
    writer = harness.popen(["sh", "-c", f"echo {text} >{job.dir}/ctl"])
    harness.wait_for(lambda: len(patches(server)) >= n, what="the patch")
    return writer


@pytest.mark.parametrize("fault", [None, "lose"])
def test_other_queue(server, waiting, fault):
    """A write to ctl sets the queue label, with the version of the job that kxfs has read. The write returns when Kueue
    has moved the job, even if the server's reply is lost."""
    owner = server.store.find(waiting.resource, "test", "app")
    uid, version = owner.uid, str(owner.version)
    server.store.add(st.LOCAL_QUEUES, {"metadata": {"name": "other", "namespace": "test"}, "spec": {"clusterQueue": "cq"}})
    if fault:
        server.faults.add(fault, amount=60, verb="patch", resource=waiting.resource.plural)
    writer = asks(server, waiting, "queue other")
    assert patches(server)[0] == (waiting.resource.plural, "app", {"metadata": {
        "uid": uid, "resourceVersion": version, "labels": {"kueue.x-k8s.io/queue-name": "other"}}})
    harness.wait_for(lambda: waiting.status()["queue"] == "other", what="the label")
    obeys(server, waiting, **{"queue-name": "other"})
    assert writer.wait(timeout=harness.LIMIT) == 0
    shown(waiting)
    assert len(patches(server)) == 1
    harness.wait_for(lambda: waiting.status()["cluster_queue"] == "cq", what="the other queue")


def test_webhook_down(server, waiting):
    """If a webhook does not answer, the server changes nothing. The write fails immediately with the server's
    message."""
    server.store.add(st.LOCAL_QUEUES, {"metadata": {"name": "other", "namespace": "test"}, "spec": {"clusterQueue": "cq"}})
    server.faults.add("reply", verb="patch", resource=waiting.resource.plural, reply=replies.internal(
        "Internal error occurred: failed calling webhook \"mutate.kb.io\": failed to call webhook: Post "
        "\"https://kueue-webhook-service.kueue-system.svc:443/mutate?timeout=10s\": no endpoints available"))
    assert harness.err_of(write_ctl, waiting, "queue other") == "EIO"
    assert len(patches(server)) == 1 and waiting.status()["pending_command"] is None
    assert "its webhook mutate.kb.io (kueue-webhook-service.kueue-system.svc) does not answer" in waiting.kx.read(".kxfs", "log")


def test_priority(server, waiting):
    server.store.add(st.CLASSES, {"metadata": {"name": "high"}, "value": 1000})
    writer = asks(server, waiting, "priority high")
    obeys(server, waiting, **{"priority-class": "high"})
    assert writer.wait(timeout=harness.LIMIT) == 0
    shown(waiting)
    harness.wait_for(lambda: waiting.status()["priority"] == 1000, what="the priority")
    assert waiting.status()["priority_class"] == "high"
    assert json.loads(waiting.kx.read("list.jsonl").splitlines()[0])["priority"] == 1000


def test_too_late(server, waiting):
    """The write comes too late, because Kueue has already admitted the job from its old queue."""
    server.store.add(st.LOCAL_QUEUES, {"metadata": {"name": "other", "namespace": "test"}, "spec": {"clusterQueue": "cq"}})
    writer = asks(server, waiting, "queue other")
    server.store.change(st.WORKLOADS, "test", WORKLOAD, lambda tree: tree.update(status={
        "admission": {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "flavors": {"cpu": "spot"}}]},
        "conditions": [{"type": kind, "status": "True", "reason": kind, "message": ""}
                       for kind in ("QuotaReserved", "Admitted")]}))
    harness.wait_for(lambda: waiting.status()["flavors"] == [{"resource": "cpu", "flavor": "spot"}], what="its quota")
    harness.wait_for(lambda: "queue came too late" in waiting.kx.read(".kxfs", "log"), what="that it is too late")
    writer.wait(timeout=harness.LIMIT)  # the process may have waited for 5 s by then
    assert actions(waiting) == ["suspend"]
    assert harness.err_of(write_ctl, waiting, "queue other") == "EINVAL"
    assert "Kueue can move a job to another queue only while the job waits" in waiting.kx.read(".kxfs", "log")


def test_no_such_queue(server, waiting):
    """Kueue would accept the name of a missing queue, and the job would wait for it. So kxfs refuses the write.
    Without the right to check this, the write succeeds."""
    for word, text in (("queue other", "there is no queue other in namespace test; queues/ lists them"),
                       ("priority high", "there is no Kueue priority class high"),
                       ("queue Other", "write one of suspend, resume, restart, terminate, release, queue NAME, priority CLASS"),
                       ("queue", "write one of suspend")):
        assert harness.err_of(write_ctl, waiting, word) == "EINVAL"
        assert text in waiting.kx.read(".kxfs", "log")
    assert patches(server) == [] and waiting.status()["pending_command"] is None
    server.forbidden.append({"verb": "get", "resource": "workloadpriorityclasses"})
    writer = asks(server, waiting, "priority high")
    obeys(server, waiting, **{"priority-class": "high"})
    assert writer.wait(timeout=harness.LIMIT) == 0


def test_deactivated_without_the_right(server, make):
    """If the user has no right to patch Workloads, the refusal names the missing right and an alternative."""
    server.forbidden.append({"verb": "patch", "resource": "workloads"})
    kx = make(options="cancel=all")
    load(server, "kueue_appwrapper_deactivated", says("The workload is deactivated"))
    job = harness.Job(kx, "app")
    harness.wait_for(lambda: "app" in kx.ls("jobs") and actions(job) == ["resume"], what="resume")
    assert "It resumes when spec.active of its Workload is set to true again." in job.read("why")
    assert harness.err_of(write_ctl, job, "resume") == "ENOTSUP"
    log = kx.read(".kxfs", "log")
    assert "no right to patch workloads.kueue.x-k8s.io" in log and "copy its manifest.yaml into submit/" in log


# --- rights, and clusters without Kueue ---

UNSEEN = ("The job waits: Kueue has not admitted it from queue team. This mount can't watch Workloads, which show the reason; see .kxfs/info.")


def test_without_workloads(server, make):
    """Without the right to see Workloads, kxfs knows only that Kueue manages the job."""
    server.forbidden += [{"resource": "workloads"}, {"resource": "localqueues"}]
    load(server, "kueue_appwrapper_quota_wait", says("more needed"))
    kx = make("kueue_appwrapper_quota_wait", seen=False, options="cancel=all")
    harness.wait_for(lambda: len(info(kx)["refused"]) == 3, what="the refusals")
    assert [r["resource"] for r in info(kx)["refused"]] == [
        "workloads.kueue.x-k8s.io", "localqueues.kueue.x-k8s.io", "clusterqueues.kueue.x-k8s.io"]
    assert all(r["cost"] for r in info(kx)["refused"])
    why(kx, UNSEEN)
    assert not (kx / "queues").exists()
    assert actions(harness.Job(kx, "app")) == []
    assert harness.err_of(write_ctl, harness.Job(kx, "app"), "suspend") == "ENOTSUP"
    assert "this mount can't watch Workloads; see .kxfs/info" in kx.read(".kxfs", "log")


def test_workloads_come_later(server, make):
    """If there is no Workload after a while, `why` says that Kueue may not run. When the Workload appears, `why`
    no longer says so."""
    load(server, "kueue_appwrapper_quota_wait", lambda step: step.tree["kind"] == "AppWrapper"
         and step.tree["metadata"]["name"] == "app" and "status" in step.tree)
    for workload in server.store.objects(st.WORKLOADS)[0]:
        server.store.remove(st.WORKLOADS, "test", workload.name)
    kx = make("kueue_appwrapper_quota_wait", options="cancel=all")
    why(kx, "The job waits: Kueue has not processed it yet. If this lasts, Kueue may be down, or may not manage this namespace.")
    assert harness.err_of(write_ctl, harness.Job(kx, "app"), "suspend") == "EINVAL"
    assert "the job is in a Kueue queue, but Kueue has not created a Workload for it yet" in kx.read(".kxfs", "log")
    load(server, "kueue_appwrapper_quota_wait", says("more needed"))
    why(kx, f"The job waits: {full('appwrapper-quota-wait')}.")


@pytest.mark.parametrize("source", ["appwrapper:test", "volcano:test"])
def test_without_kueue(server, make_mount, source):
    """In a cluster without Kueue, a mount requests nothing of Kueue."""
    server.install(st.NEW_APPWRAPPERS)
    kx = make_mount(server, source=source)
    if source.startswith("appwrapper"):
        assert info(kx)["kueue"] is None
    else:
        assert "kueue" not in info(kx)
    server.store.add(st.NEW_APPWRAPPERS, {
        "metadata": {"name": "app", "namespace": "test", "labels": {"kueue.x-k8s.io/queue-name": "team"}},
        "spec": {"suspend": True, "components": []}, "status": {"phase": "Suspended"}})
    if source.startswith("appwrapper"):
        harness.wait_for(lambda: "app" in kx.ls("jobs"), what="the job")
        why(kx, "The job waits: it is in Kueue queue team, but Kueue is not installed in this "
                "cluster. Submit the job without a queue.")
        assert harness.Job(kx, "app").status()["queue_position"] is None
    assert [req.path for req in server.requests if "kueue" in req.path] == []


def test_kueue_installed_later(server, make_mount, tmp_path):
    """A mount checks for Kueue again every ten minutes."""
    server.install(st.NEW_APPWRAPPERS)
    clock = Clock(tmp_path, time.CLOCK_MONOTONIC)
    kx = make_mount(server, source="appwrapper:test", env=clock.env)
    load(server, "kueue_appwrapper_quota_wait", lambda step: step.tree["kind"] == "AppWrapper"
         and step.tree["metadata"]["name"] == "app" and "status" in step.tree)
    why(kx, "The job waits: it is in Kueue queue team, but Kueue is not installed in this cluster. Submit the job without a queue.")
    server.install(*st.KUEUE)
    load(server, "kueue_appwrapper_quota_wait", says("more needed"))
    clock.set(601)
    harness.wait_for(lambda: info(kx)["kueue"] == "kueue.x-k8s.io/v1beta2", what="Kueue")
    harness.wait_for(lambda: kx.read("jobs/app/why").startswith("The job waits: it has no quota in queue team"), what="Kueue's words")
