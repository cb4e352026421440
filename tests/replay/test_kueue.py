# SPDX-License-Identifier: MIT
"""Mounts of a cluster with Kueue: why a job waits, its position in the queue, `queues/`, ctl, missing rights, and
clusters without Kueue.

These tests play recordings of a real cluster to a mount. tests/replay/data/recordings/kueue.why has what users read
after each event of each recording; test-stories.c checks that without a mount."""

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
from fakes import FakeJob
from harness import actions, write_ctl

WORKLOAD = "of-app-1a2b3"
IN_LINE = ["suspend", "queue NAME", "priority CLASS"]  # the actions that ctl offers for a waiting job
RESUME = " To resume the job, write \"resume\" to its file ctl; to end the job, remove its directory."
ACTIVE = f"It resumes when spec.active of its Workload is set to true again.{RESUME}"


def kueue_of(scenario):
    return st.OLD_KUEUE if scenario.startswith("kueue_v014") else st.KUEUE


@pytest.fixture
def make(server, make_mount):
    """make(SCENARIO, **kwargs) returns a mount of a cluster with the Kueue of this recording."""
    def make(scenario="kueue_appwrapper_success", **kwargs):
        server.uninstall(*st.VOLCANO)
        server.install(st.NEW_APPWRAPPERS, *kueue_of(scenario))
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
    """Return a function that is true for a step once two things have happened: the controller has acted on the job
    `app`, and the Workload of this job has a condition with the message TEXT."""
    has = {"text": False, "phase": False}

    def until(step):
        name, status = step.tree["metadata"]["name"], step.tree.get("status", {})
        if step.tree["kind"] == "Workload" and name.startswith("appwrapper-app-"):
            has["text"] = any(text in c["message"] for c in status.get("conditions", [])
                              if c["status"] != "True" or c["type"] == "Evicted")
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


def full(cluster_queue):
    """Return the text of `why` for a job without quota. It quotes Kueue's message."""
    return f"it has no quota in queue team (cluster queue {cluster_queue}). Kueue: \"" + "; ".join(
        f"couldn't assign flavors to pod set {name}: insufficient unused quota for cpu in flavor default-flavor, "
        f"{lacks} more needed" for name, lacks in (("app-0", "50m"), ("app-1", "100m"))) + "\""


# --- recordings of a real cluster ---


@pytest.mark.parametrize("scenario, until, state, reason, evictions, text", [
    ("kueue_appwrapper_quota_wait", "more needed", "PENDING", "Queued", 0, f"The job waits: {full('CQ')}."),
    ("kueue_v014_appwrapper_clusterqueue_drain", "is inactive", "PENDING", "QueueStopped", 1,
     "The job waits: cluster queue CQ (of queue team) is stopped (HoldAndDrain); its cluster queue was drained at "
     "2026-11-22T06:32:12Z. Kueue admits it when the queue is opened again."),
    ("kueue_appwrapper_deactivated", "The workload is deactivated", "RUNNING", "Deactivated", 1,
     f"The job is being stopped: its Workload appwrapper-app-56912 was deactivated. {ACTIVE}"),
])
def test_why(server, make, scenario, until, state, reason, evictions, text):
    """A mount that runs from the start shows why the job waits, and so does a later mount. With cancel=all, `why` also
    says how to resume the job."""
    text = text.replace("CQ", scenario.removeprefix("kueue_").replace("_", "-"))
    kx = make(scenario)
    load(server, scenario, says(until))
    for mount, expected in ((kx, text.removesuffix(RESUME)), (make(scenario, options="cancel=all"), text)):
        why(mount, expected)
        job = harness.Job(mount, "app")
        harness.wait_for(lambda job=job: job.state() == state, what=f"state {state}")  # its pods may report the state later
        status = job.status()
        assert (status["reason"], status["queue"], status["evictions"]) == (reason, "team", evictions)
        assert status["queue_position"] is None and status["message"] in text


def test_grace_of_evicted_pods(server, make_mount):
    """Kueue suspends an evicted job immediately, but the pods run until their grace period is over. Until then the
    job is shown as running. Then it waits, and later runs as another attempt."""
    server.uninstall(*st.VOLCANO)
    server.install(st.BATCH_JOBS, *st.KUEUE)
    jobs = FakeJob(server)
    kx = make_mount(server, source="job:test", options="queue=team")
    job = kx.submit(harness.app("true", num_replicas=2))

    def tell(suspend, **conditions):
        """Let Kueue set spec.suspend of the job, and the conditions of its Workload."""
        server.store.change(st.BATCH_JOBS, "test", job.id, lambda tree: tree["spec"].update(suspend=suspend))
        jobs.say(job.id, *(["Suspended"] if suspend else []))
        evictions = [{"reason": "Preempted", "count": 1}] if conditions.get("Evicted") else []
        server.store.change(st.WORKLOADS, "test", "one", lambda tree: tree["status"].update(
            schedulingStats={"evictions": evictions}, conditions=[
                {"type": kind, "status": str(holds), "reason": "Preempted", "message": "Preempted to accommodate a "
                 "workload due to prioritization in the ClusterQueue", "lastTransitionTime": "2026-11-22T06:20:55Z"}
                for kind, holds in conditions.items()]))

    def row():
        """Return the columns STATE and READY of `list`."""
        words = kx.read("list").splitlines()[1].split()
        return words[1], words[4]

    server.store.add(st.WORKLOADS, {
        "metadata": {"name": "one", "namespace": "test", "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "Job", "name": job.id, "controller": True,
            "uid": server.store.find(st.BATCH_JOBS, "test", job.id).uid}]},
        "spec": {"queueName": "team", "active": True}, "status": {}})
    tell(False, QuotaReserved=True, Admitted=True)
    jobs.start(job.id)
    harness.wait_for(lambda: row() == ("RUNNING", "2/2"), what="that it runs")
    for pod in jobs.pods(job.id):
        server.store.change(st.PODS, "test", pod, lambda tree: tree["metadata"].update(
            deletionTimestamp=st.now(), deletionGracePeriodSeconds=30))
    tell(True, QuotaReserved=True, Admitted=True, Evicted=True)
    harness.wait_for(lambda: "it was preempted" in job.read("why"), what="why")
    assert row() == ("RUNNING", "2/2")
    jobs.remove_pods(job.id)
    tell(True, QuotaReserved=False, Admitted=False, Evicted=True)
    harness.wait_for(lambda: row() == ("PENDING", "0/2"), what="that it waits")
    assert "it was preempted" in job.read("why") and job.status()["evictions"] == 1
    time.sleep(1.1)  # kxfs orders pods by their creation time, which has whole seconds
    tell(False, QuotaReserved=True, Admitted=True, Evicted=False)
    for index in range(2):
        jobs.run(jobs.retry(job.id, index))
    harness.wait_for(lambda: [job.replica(f"main-{i}")["attempt"] for i in range(2)] == [1, 1], what="the next attempt")
    assert job.until("RUNNING") == "RUNNING"


def test_evicted_for_good(server, make):
    """If Kueue will never admit a job again, `wait` ends, `why` has the remedy, and ctl does not resume the job."""
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
    assert asked(server) == [] and "team)" not in lines()["app"], "a read does not wait for the reply"
    harness.wait_for(lambda: lines()["app"].endswith(" (2 in team)") and lines()["third"].endswith(" (3 in team)"),
                     what="the places", step=0.2)
    assert lines()["app"].split()[7] == harness.Job(kx, "app").status()["reason"]
    server.api.places["team"] = summary(server, "app", "third")
    harness.wait_for(lambda: lines()["app"].endswith(" (1 in team)"), what="the next place", step=0.2)
    assert {req.path for req in asked(server)} == {asked(server)[0].path}


def test_place(server, make):
    """kxfs requests a position only when a process reads it. The first job in the queue has position 1."""
    scenario = "kueue_v014_appwrapper_quota_wait"
    load(server, scenario, lambda step: step.tree["kind"] == "Workload" and "third" in step.tree["metadata"]["name"])
    server.api.places["team"] = summary(server, "app", "third", ahead=1)
    kx = make(scenario)
    harness.wait_for(lambda: info(kx)["kueue"] == kueue_of(scenario)[0].api_version, what="Kueue")
    harness.run(["ls", "-l", str(kx / "jobs/app")])
    begin = time.monotonic()
    assert asked(server) == [], "no process has read a position"
    assert harness.Job(kx, "app").status()["queue_position"] is None, "a read does not wait for the reply"
    place(kx, "app", 2)
    place(kx, "third", 3)
    harness.wait_for(lambda: kx.read("jobs/app/why").endswith(" Its position in the queue is 2.\n"), what="why")
    server.api.places["team"] = summary(server, "app")
    place(kx, "app", 1)
    place(kx, "third", None)
    # kxfs sends at most one request in 5 s. Request number i arrives no earlier than 5 s times i, but may be late.
    times = [req.at - begin for req in asked(server)]
    assert all(at > 4.9 * i for i, at in enumerate(times)), times
    assert {req.code for req in asked(server)} - {None} == {200}, "the last request may not have a reply yet"


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


def test_queues(server, make):
    scenario = "kueue_appwrapper_quota_wait"
    load(server, scenario, lambda step: step.tree["kind"] == "LocalQueue"
         and step.tree.get("status", {}).get("pendingWorkloads") == 2)
    for resource in ("workloads", "localqueues", "clusterqueues"):
        server.faults.add("slow", amount=400, delay=0.1, verb="list", resource=resource)
    kx = make(scenario, options="cancel=all")
    assert kx.ls("queues") == ["team"], "queues/ is complete when the start has returned"
    assert "suspend" in (kx / "jobs/app/ctl").read_text().split(), "so is the Workload, which ctl needs"
    expected = {
        "name": "team", "state": "Open", "stopped_by": None, "message": "Can submit new workloads to localQueue",
        "cluster_queue": "appwrapper-quota-wait", "cohort": None, "strategy": "BestEffortFIFO",
        "flavors": [{"flavor": "default-flavor", "resource": "cpu", "used": "100m", "reserved": "100m",
                     "nominal": "100m", "borrowing_limit": None, "borrowed": "0"}],
        "workloads": {"pending": 2, "reserving": 1, "admitted": 1}}

    def shown():
        status = yaml.safe_load(kx.read("queues/team/status"))
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
    server.forbidden.append({"resource": "clusterqueues"})
    kx = make(scenario)
    why(kx, "The job waits: queue team (cluster queue appwrapper-clusterqueue-hold) is inactive. "
            "Kueue: \"Can't submit new workloads to clusterQueue\".")
    harness.wait_for(lambda: [r["resource"] for r in info(kx)["refused"]] == ["clusterqueues.kueue.x-k8s.io"],
                     what="the refusal")
    harness.wait_for(lambda: (kx / "queues/team/status").exists(), what="the queue")
    status = yaml.safe_load(kx.read("queues/team/status"))
    assert {flavor["nominal"] for flavor in status["flavors"]} == {None} and status["strategy"] is None


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


@pytest.fixture
def waiting(server, make_mount):
    """A job that waits in its queue."""
    server.uninstall(*st.VOLCANO)
    server.install(st.BATCH_JOBS, *st.KUEUE)
    owner = server.store.add(st.BATCH_JOBS, {
        "metadata": {"name": "app", "namespace": "test", "labels": {"kueue.x-k8s.io/queue-name": "team"}},
        "spec": {"suspend": True, "completions": 1, "template": {"spec": {"containers": [{"name": "c"}]}}},
        "status": {"conditions": [{"type": "Suspended", "status": "True", "reason": "JobSuspended"}]}})
    server.store.add(st.WORKLOADS, {
        "metadata": {"name": WORKLOAD, "namespace": "test", "ownerReferences": [
            {"kind": "Job", "name": "app", "uid": owner.uid, "controller": True}]},
        "spec": {"queueName": "team", "podSets": []}})
    server.store.add(st.LOCAL_QUEUES, {
        "metadata": {"name": "other", "namespace": "test"}, "spec": {"clusterQueue": "cq"}})
    kx = make_mount(server, source="job:test", options="cancel=all")
    job = harness.Job(kx, "app")
    harness.wait_for(lambda: actions(job) == IN_LINE, what="its Workload")
    return job


@pytest.mark.parametrize("fault", ["lose", "cut"])
def test_suspend_in_line(server, waiting, fault):
    """A waiting job is suspended, and waits again after it is resumed, even if the server's reply is lost."""
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
        return server.store.find(st.BATCH_JOBS, "test", "app").tree()["metadata"]["labels"]
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
    owner = server.store.find(st.BATCH_JOBS, "test", "app")
    uid, version = owner.uid, str(owner.version)
    if fault:
        server.faults.add(fault, amount=60, verb="patch", resource="jobs")
    writer = asks(server, waiting, "queue other")
    assert patches(server)[0] == ("jobs", "app", {"metadata": {
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
    server.faults.add("reply", verb="patch", resource="jobs", reply=replies.internal(
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
    for word, text in (("queue third", "there is no queue third in namespace test; queues/ lists them"),
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


# --- rights, and clusters without Kueue ---

UNSEEN = ("The job waits: Kueue has not admitted it from queue team. This mount can't watch Workloads, which show the reason; see .kxfs/info.")


def test_without_workloads(server, make):
    """Without the right to see Workloads, kxfs knows only that Kueue manages the job."""
    server.forbidden += [{"resource": name} for name in ("workloads", "localqueues", "clusterqueues")]
    load(server, "kueue_appwrapper_quota_wait", says("more needed"))
    kx = make("kueue_appwrapper_quota_wait", options="cancel=all")
    harness.wait_for(lambda: len(info(kx)["refused"]) == 3, what="the refusals")
    assert [r["resource"] for r in info(kx)["refused"]] == [
        "workloads.kueue.x-k8s.io", "localqueues.kueue.x-k8s.io", "clusterqueues.kueue.x-k8s.io"]
    assert all(r["cost"] for r in info(kx)["refused"])
    why(kx, UNSEEN)
    assert not (kx / "queues").exists()
    assert actions(harness.Job(kx, "app")) == []
    assert harness.err_of(write_ctl, harness.Job(kx, "app"), "suspend") == "ENOTSUP"
    assert "this mount can't watch Workloads; see .kxfs/info" in kx.read(".kxfs", "log")


def test_without_kueue(server, make_mount):
    """In a cluster without Kueue, a mount requests nothing of Kueue, and `why` of a job with a queue says so."""
    server.install(st.NEW_APPWRAPPERS)
    kx = make_mount(server, source="appwrapper:test")
    assert info(kx)["kueue"] is None
    server.store.add(st.NEW_APPWRAPPERS, {
        "metadata": {"name": "app", "namespace": "test", "labels": {"kueue.x-k8s.io/queue-name": "team"}},
        "spec": {"suspend": True, "components": []}, "status": {"phase": "Suspended"}})
    why(kx, "The job waits: it is in Kueue queue team, but Kueue is not installed in this cluster. "
            "Submit the job without a queue.")
    assert harness.Job(kx, "app").status()["queue_position"] is None
    assert [req.path for req in server.requests if "kueue" in req.path] == []
