# SPDX-License-Identifier: MIT
"""Jobs whose pods are controlled by an object in between: the launcher Job of an MPIJob, the RayCluster of a RayJob,
the JobSet of a TrainJob, the driver of a SparkApplication. The tests play recordings of the real operators to a
mount."""

import json
import os
import threading

import harness
import pytest
import recordings
import replies
import store as st
import yaml
from harness import wait_for, write_ctl
from podlog import Log

KINDS = {name: st.KIND_FILES[name] for name in ("mpijob", "rayjob", "trainjob", "sparkapplication")}
RESOURCES = {r.kind: r for r in (*KINDS.values(), st.PODS, st.EVENTS, st.RAYCLUSTERS, st.JOBSETS, st.BATCH_JOBS)}


@pytest.fixture
def server(server):
    server.uninstall(*st.VOLCANO)
    server.install(*KINDS.values(), st.RAYCLUSTERS, st.JOBSETS, st.BATCH_JOBS)
    return server


def play(server, kind, story, until=lambda step: False):
    """Play STORY up to the first step for which UNTIL is true. Return an iterator of the remaining steps."""
    left = recordings.story(kind, story, RESOURCES)
    for step in left:
        recordings.apply(server.store, step)
        if until(step):
            break
    return left


def all_run(n):
    """Return a function that is true for the step after which N pods run."""
    running = set()

    def fits(step):
        if step.resource is st.PODS and step.tree["status"].get("phase") == "Running":
            running.add(step.tree["metadata"]["uid"])
        return len(running) == n
    return fits


def replicas(job):
    return {f"{role['name']}-{r['id']}": r["state"] for role in job.status()["roles"] for r in role["replicas"]}


def begin_logs(server):
    """Let each pod print one line. Return the logs by the names of the pods."""
    logs = {}
    for pod in server.store.objects(st.PODS)[0]:
        for container in pod.tree()["status"]["containerStatuses"]:
            server.api.logs[pod.uid, container["name"], 0] = logs[pod.name] = Log()
            logs[pod.name].append(f"I am {pod.name}\n")
    return logs


def refused(kx):
    return {row["resource"]: row for row in yaml.safe_load(kx.read(".kxfs", "info"))["refused"]}


@pytest.mark.parametrize(("kind", "story", "name", "state", "shown"), [
    ("mpijob", "success", "ok", "SUCCEEDED", {"launcher-0": "SUCCEEDED", "worker-0": "RUNNING", "worker-1": "RUNNING"}),
    ("rayjob", "success", "ok", "SUCCEEDED",
     {"submitter-0": "SUCCEEDED", "head-0": "RUNNING", "small-0": "RUNNING", "small-1": "RUNNING"}),
    ("trainjob", "success", "ok", "SUCCEEDED", {"node-0": "SUCCEEDED", "node-1": "SUCCEEDED"}),
    ("sparkapplication", "success", "ok", "SUCCEEDED",
     {"driver-0": "SUCCEEDED", "executor-0": "SUCCEEDED", "executor-1": "SUCCEEDED"}),
])
@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_recorded(server, make_mount, kind, story, name, state, shown, alone, late):
    """The job is shown with all of its pods, and no part of it is shown as a job. The mount shows all kinds or only
    this one; it runs from the beginning, or starts after the recording."""
    if late:
        play(server, kind, story)
    kx = make_mount(server, source=f"{kind}:test" if alone else "test")
    if not late:
        play(server, kind, story)
    wait_for(lambda: kx.ls("jobs") == [name] and harness.Job(kx, name).state() == state, what=state)
    if late and kind == "sparkapplication":
        # The executors were deleted before this mount started. So kxfs can't know how they ended.
        wait_for(lambda: replicas(harness.Job(kx, name))["driver-0"] == "SUCCEEDED", what="the driver")
        found = replicas(harness.Job(kx, name))
        assert found.keys() == shown.keys()
        assert {found["executor-0"], found["executor-1"]} <= {"CANCELLED", "UNKNOWN"}
    else:
        wait_for(lambda: replicas(harness.Job(kx, name)) == shown, what="the replicas")
    assert harness.Job(kx, name).status()["kind"] == kind
    assert kx.ls("jobs") == [name]


def test_requests(server, make_mount):
    """kxfs requests only the metadata of parts. It requests nothing for parts that it watches as jobs anyway."""
    play(server, "rayjob", "success")
    make_mount(server, source="test")
    wait_for(lambda: server.count(verb="watch", resource="rayclusters"), what="the watch")
    assert all(req.is_metadata for req in server.seen(resource="rayclusters"))
    assert server.count(verb="watch", resource="jobs") == server.count(verb="watch", resource="jobsets") == 1
    make_mount(server, source="mpijob:test")
    assert all(req.is_metadata for req in server.seen(verb="watch", resource="jobs")[1:])


def test_events(server, make_mount):
    """Events about a part are shown as events of its job."""
    kx = make_mount(server, source="mpijob:test")
    play(server, "mpijob", "success")
    job = harness.Job(kx, "ok")
    wait_for(lambda: "ok" in kx.ls("jobs") and "Created pod: ok-launcher" in job.read("events"), what="the event")


def test_logs_ctl_and_removal(server, make_mount):
    """Each replica has its own log. ctl sets the field that suspends the job. Removing the job
    deletes only the job, with its uid as a precondition."""
    kx = make_mount(server, options="cancel=all", source="rayjob:test")
    play(server, "rayjob", "delete", until=all_run(3))
    job = harness.Job(kx, kx.ls("jobs")[0] if kx.ls("jobs") else "gone")
    wait_for(lambda: kx.ls("jobs") and set(replicas(job).values()) == {"RUNNING"}, what="RUNNING")
    begin_logs(server)
    for replica in replicas(job):
        wait_for(lambda r=replica: job.read(r, "log").startswith("I am "), what="its log")
    thread = threading.Thread(target=write_ctl, args=(job, "suspend"))
    thread.start()
    wait_for(lambda: server.store.find(st.RAYJOBS, "test", job.id).tree()["spec"].get("suspend") is True, what="the patch")
    server.store.change(st.RAYJOBS, "test", job.id, lambda tree: tree["status"].update(jobDeploymentStatus="Suspended"))
    thread.join()
    uid = server.store.find(st.RAYJOBS, "test", job.id).uid
    harness.rmdir(job.dir)
    deleted = [(req.resource.plural, json.loads(req.body)["preconditions"]["uid"]) for req in server.seen(verb="delete")]
    assert deleted == [("rayjobs", uid)]


def test_forbidden_parts(server, make_mount):
    """A user has no right to watch the parts of a job, so kxfs can't know its pods. The job is RUNNING because its
    controller reports that. .kxfs/info and `why` explain why the pods are not known."""
    server.forbidden.extend([{"resource": "rayclusters"}, {"resource": "jobs"}])
    kx = make_mount(server, source="rayjob:test")
    play(server, "rayjob", "delete", until=all_run(3))
    wait_for(lambda: kx.ls("jobs"), what="the job")
    job = harness.Job(kx, kx.ls("jobs")[0])
    wait_for(lambda: job.state() == "RUNNING", what="RUNNING")
    assert refused(kx)["rayclusters.ray.io"]["cost"] == "kxfs shows neither pods of RayClusters nor their logs"
    assert replicas(job)["head-0"] == "PENDING"
    wait_for(lambda: "kxfs can't find its pods" in job.read("why"), what="why")


def test_part_forbidden_after_a_start(server, make_mount):
    """A mount without the right to watch RayClusters still captures the pods that an earlier mount has captured, and
    reports no gap."""
    kx = make_mount(server, options="capture=all", source="rayjob:test")
    play(server, "rayjob", "success-shutdown", until=all_run(3))
    logs = begin_logs(server)
    wait_for(lambda: kx.ls("jobs") == ["brief"], what="the job")
    job = harness.Job(kx, "brief")
    pod = "brief-57ctn-head-9svkm"
    wait_for(lambda: job.read("head-0", "log") == f"I am {pod}\n", what="its log")
    assert kx.end() == 0
    server.forbidden.append({"resource": "rayclusters"})
    logs[pod].append("later\n")
    kx.start()
    wait_for(lambda: job.read("head-0", "log") == f"I am {pod}\nlater\n", what="what the pod has printed meanwhile")
    assert "rayclusters.ray.io" in refused(kx)
    assert yaml.safe_load(job.read("head-0", "status"))["gap"] == 0


@pytest.mark.parametrize(("resource", "source"), [("rayclusters", "rayjob:test"), ("rayclusters", "test"), ("jobs", "test")])
def test_list_of_parts_fails(server, make_mount, resource, source):
    """While the server fails to list the parts, or the jobs that are parts, the mount shows the job and why its pods
    are unknown."""
    play(server, "rayjob", "delete", until=all_run(3))
    fault = server.faults.add("reply", times=100000, reply=replies.unavailable(), verb="list", resource=resource)
    kx = make_mount(server, source=source)
    wait_for(lambda: kx.ls("jobs"), what="the job")
    job = harness.Job(kx, kx.ls("jobs")[0])
    wait_for(lambda: job.state() == "RUNNING", what="RUNNING")
    trouble = {row["kind"]: row.get("trouble", "") for row in yaml.safe_load(kx.read(".kxfs", "info"))["kinds"]}["rayjob"]
    if resource == "rayclusters":
        assert trouble.startswith("kxfs shows neither pods of RayClusters nor their logs: ")
        assert replicas(job)["head-0"] == "PENDING"
    else:
        assert trouble.startswith("kxfs shows neither pods of Jobs nor their logs: ")
    server.faults.clear(fault)
    wait_for(lambda: set(replicas(job).values()) == {"RUNNING"}, what="its pods")
    wait_for(lambda: "trouble" not in kx.read(".kxfs", "info"), what="no more trouble")


def test_list_of_parts_is_late(server, make_mount):
    """While a starting mount can't list the parts, the pods are unknown. No output counts as lost because of that."""
    play(server, "rayjob", "delete", until=all_run(3))
    begin_logs(server)
    kx = make_mount(server, options="capture=all", source="rayjob:test")
    wait_for(lambda: kx.ls("jobs"), what="the job")
    job = harness.Job(kx, kx.ls("jobs")[0])
    names = list(replicas(job))
    for name in names:
        wait_for(lambda r=name: job.read(r, "log").startswith("I am "), what="its log")
    lists = server.count(verb="list", resource="rayclusters")
    fault = server.faults.add("reply", times=100000, reply=replies.unavailable(), verb="list", resource="rayclusters")
    kx.restart()
    assert server.count(verb="list", resource="rayclusters") > lists
    server.faults.clear(fault)
    for name in names:
        wait_for(lambda r=name: "I am " in job.read(r, "log"), what="its log")
    wait_for(lambda: server.count(verb="get", subresource="log") >= 2 * len(names), what="the logs are followed again")
    assert [yaml.safe_load(job.read(name, "status"))["gap"] for name in names] == [0] * len(names)


@pytest.mark.parametrize("kind", ["pytorchjob", "tfjob", "xgboostjob", "paddlejob", "jaxjob", "mpijob", "rayjob",
                                  "sparkapplication", "trainjob", "workflow"])
def test_again(server, make_mount, kind):
    """The manifest of a finished job runs it again under another name. It contains nothing that controllers or ctl
    have written into the job."""
    resource = st.KIND_FILES[kind]
    server.install(resource)
    story = "success-steps" if kind == "workflow" else "success"
    for step in recordings.story(kind, story, {**RESOURCES, resource.kind: resource}):
        recordings.apply(server.store, step)
    kx = make_mount(server, source=f"{kind}:test")
    wait_for(lambda: kx.ls("jobs"), what="the job")
    first, = kx.ls("jobs")
    old = server.store.find(resource, "test", first).tree()
    kx.write("submit/again.yaml", harness.Job(kx, first).read("manifest.yaml"))
    new, = (o.tree() for o in server.store.objects(resource)[0] if o.name != first)
    assert new["metadata"]["name"].startswith(first) and "status" not in new
    assert new["metadata"].get("ownerReferences") is None and not new["metadata"].get("finalizers")
    assert not {key: value for key, value in new["spec"].items() if key not in old["spec"]}
    assert os.readlink(f"{kx.mnt}/submit/again.yaml.job") == f"../jobs/{new['metadata']['name']}"


def test_archive(server, make_mount, tmp_path):
    """When a RayJob has ended, its output is archived, although its RayCluster still runs."""
    kx = make_mount(server, options=f"archive={tmp_path},capture=all", source="rayjob:test")
    left = play(server, "rayjob", "success", until=all_run(4))
    logs = begin_logs(server)
    wait_for(lambda: kx.ls("jobs") == ["ok"], what="the job")
    for step in left:
        recordings.apply(server.store, step)
    for name, log in logs.items():
        if server.store.find(st.PODS, "test", name).tree()["status"]["phase"] == "Succeeded":
            log.end()
    wait_for(lambda: list(tmp_path.glob("test/*/ok")), timeout=100, what="the copy")
    copy, = tmp_path.glob("test/*/ok")
    assert (copy / "state").read_text() == "SUCCEEDED\n"
    lines = (copy / "log").read_text().splitlines()
    assert sorted(line.split()[-1] for line in lines) == sorted(logs)


@pytest.mark.parametrize("pods", ["gone", "left"])
def test_cluster_is_gone_before_a_start(server, make_mount, tmp_path, pods):
    """While no mount runs, a RayJob ends, and its RayCluster is deleted, with its pods or without. The next mount
    shows and archives the captured output, even if it was not in the merged log yet."""
    kx = make_mount(server, options=f"archive={tmp_path},capture=all", source="rayjob:test")
    left = play(server, "rayjob", "success-shutdown", until=all_run(3))
    logs = begin_logs(server)
    wait_for(lambda: kx.ls("jobs") == ["brief"], what="the job")
    job = harness.Job(kx, "brief")
    names = {"submitter-0": "brief-s8gxr", "head-0": "brief-57ctn-head-9svkm", "small-0": "brief-57ctn-small-worker-rvg22"}
    for replica, pod in names.items():
        wait_for(lambda r=replica, p=pod: job.read(r, "log") == f"I am {p}\n", what="its log")
    lines = [f"{replica.replace('-', '/')} I am {pod}" for replica, pod in names.items()]
    assert kx.end() == 0
    for step in left:
        if pods == "gone" or step.kind != "DELETED" or step.resource is not st.PODS:
            recordings.apply(server.store, step)
    for pod, log in logs.items():
        log.append(f"{pod} ends\n")
        log.end()
    kx.start()
    wait_for(lambda: job.state() == "SUCCEEDED", what="SUCCEEDED")
    # If the pods of the other replicas are gone, their output from the time without a mount is
    # lost, and kxfs reports a gap.
    there = ["submitter-0"] if pods == "gone" else [*names]
    ends = [f"{replica.replace('-', '/')} {names[replica]} ends" for replica in there]
    wait_for(lambda: sorted(job.read("log").splitlines()) == sorted([*lines, *ends]), what="what the pods have printed meanwhile")
    for replica, pod in names.items():
        status = yaml.safe_load(job.read(replica, "status"))
        assert job.read(replica, "log").startswith(f"I am {pod}\n")
        assert (status["state"], status["gap"]) == ("SUCCEEDED" if replica == "submitter-0" else "CANCELLED", replica not in there)
    wait_for(lambda: list(tmp_path.glob("test/*/brief")), timeout=100, what="the copy")
    copy, = tmp_path.glob("test/*/brief")
    assert sorted((copy / "log").read_text().splitlines()) == sorted([*lines, *ends])
