# SPDX-License-Identifier: MIT
"""Data of the scheduler, events and queues about a mount's jobs: `why`, `events`, `queues/`; and mounts without the
right to watch one of them. tests/unit/spec/view/test-view_cause.c has a sentence for each cause."""

import os
import time
import uuid

import harness
import pytest
import store as st
import watching
import yaml

FULL = "resource in cluster is overused: overused cpu"
NOISE = "0/0 tasks in gang unschedulable: pod group is not ready, 3 minAvailable"
WHY_FULL = ("The job waits: the cluster has no capacity for it now: it "
            "needs 2.4 cpu at once. It starts automatically when capacity "
            "becomes available.\n")


def group(job, phase="Pending"):
    """Return the PodGroup of JOB (an Object)."""
    return {"apiVersion": st.PODGROUPS.api_version, "kind": "PodGroup",
            "metadata": {"name": f"{job.name}-{job.uid}", "namespace": job.namespace, "uid": str(uuid.uuid4()),
                         "creationTimestamp": st.now(),
                         "ownerReferences": [{"kind": "Job", "name": job.name, "uid": job.uid,
                                              "controller": True}]},
            "spec": {"minMember": 3, "minResources": {"cpu": "2400m"}, "queue": "default"},
            "status": {"phase": phase}}


def event(about, kind, message, reason="Unschedulable", name=None):
    """Return an Event about an Object."""
    return {"metadata": {"name": name or f"{about.name}.{uuid.uuid4().hex[:8]}", "namespace": about.namespace,
                         "uid": str(uuid.uuid4()), "creationTimestamp": st.now()},
            "involvedObject": {"kind": kind, "name": about.name, "uid": about.uid},
            "type": "Normal", "reason": reason, "message": message, "count": 1, "lastTimestamp": st.now()}


def queue(name, **status):
    return {"apiVersion": st.QUEUES.api_version, "kind": "Queue",
            "metadata": {"name": name, "uid": str(uuid.uuid4()), "creationTimestamp": st.now()},
            "spec": {"weight": 2, "capability": {"cpu": "4"}}, "status": {"state": "Open", **status}}


class Waiting:
    """A job `gang` whose group the scheduler does not admit, on SERVER."""

    def __init__(self, server):
        self.store = server.store
        self.job = self.store.add(st.JOBS, watching.job("gang", "Pending", tasks={"main": 3}))
        self.group = self.store.add(st.PODGROUPS, group(self.job))
        self.series = [self.store.add(st.EVENTS, event(self.group, "PodGroup", text)) for text in (FULL, NOISE)]

    def again(self, count):
        """Both series continue."""
        for one in self.series:
            self.store.change(st.EVENTS, "test", one.name, lambda tree: tree.update(
                count=count, lastTimestamp=st.now()))


def info(kx):
    return yaml.safe_load(watching.known(kx))


def why(kx, job="gang"):
    return kx.read("jobs", job, "why")


def test_events(server, make_mount):
    """A line for each cause, without meaningless ones; of the job, its group and its pods."""
    waiting = Waiting(server)
    kx = make_mount(server)
    harness.wait_for(lambda: why(kx) == WHY_FULL, what="why")
    status = harness.Job(kx, "gang").status()
    assert status["reason"] == "ClusterFull"
    assert status["message"] == "the cluster has no capacity for it now: it needs 2.4 cpu at once"
    waiting.again(7)
    # An event may arrive before its object.
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


def test_events_of_a_group_that_comes_late(server, make_mount):
    """Many other events do not displace those of a group whose list is slow."""
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


def test_waits_for_hours(server, make_mount, sanitized):
    """Two series a second for hours: no line in `changes`, no newer mtime, no memory, little time."""
    waiting = Waiting(server)
    kx = make_mount(server)
    harness.wait_for(lambda: why(kx) == WHY_FULL, what="why")
    before = os.stat(kx / "jobs/gang/status").st_mtime_ns
    with watching.Changes(kx) as changes:
        used = usage(kx)
        for count in range(2, 2000):
            waiting.again(count)
        last = "\t1999\t" + FULL
        harness.wait_for(lambda: last in kx.read("jobs/gang/events"), what="the last event")
        now = usage(kx)
        server.store.add(st.JOBS, watching.job("last"))
        lines = changes.until(lambda line: line[1] == "last")
    assert [line[1] for line in lines] == ["gang", "-", "last"]
    assert os.stat(kx / "jobs/gang/status").st_mtime_ns == before
    assert why(kx) == WHY_FULL
    assert sanitized or now[0] - used[0] < 8 << 20, "memory grows"
    # 4000 events of 600 bytes: parsing them takes 0.1 s, with a sanitizer more.
    assert now[1] - used[1] < 20


def usage(kx):
    """Return bytes of memory and seconds of CPU time of the daemon."""
    pid = info(kx)["pid"]
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return memory, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_no_controller(server, make_mount):
    """Nothing for five seconds, then the message that no controller has acted on it."""
    kx = make_mount(server)
    server.store.add(st.JOBS, watching.job("new"))
    harness.wait_for(lambda: "new" in kx.ls("jobs"), what="the job")
    harness.wait_for(lambda: why(kx, "new") == (
        "The job waits: no controller has processed it yet. If this "
        "lasts, the controller of these jobs may be down.\n"), what="why")
    assert harness.Job(kx, "new").status()["reason"] == "NoController"


# --- queues ----------------------------------------------------------------------------------------


def with_queues(server, make_mount):
    """A mount whose start has waited for the queue `default`, for 5 s."""
    begin = time.monotonic()
    kx = make_mount(server)
    assert (kx / "queues").exists() or time.monotonic() > begin + 4
    harness.wait_for(lambda: (kx / "queues").exists() and kx.ls("queues") == ["default"], what="queues/")
    return kx


def test_queues(server, make_mount):
    server.store.add(st.QUEUES, queue("default"))
    job = server.store.add(st.JOBS, watching.job("one", "Running"))
    server.store.add(st.JOBS, watching.job("two", "Pending"))
    server.faults.add("slow", amount=100, delay=0.05, verb="list", resource="queues")
    kx = with_queues(server, make_mount)
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


def test_own_queue(server, make_mount):
    """A user who may not see all queues may still see that of the mount."""
    server.store.add(st.QUEUES, queue("default"))
    server.store.add(st.QUEUES, queue("other"))
    server.forbidden.append({"resource": "queues", "fields": ""})
    server.faults.add("slow", times=2, amount=100, delay=0.05, verb="list", resource="queues")
    kx = with_queues(server, make_mount)
    assert info(kx)["refused"][0]["resource"] == "queues.scheduling.volcano.sh"


def test_queues_that_do_not_come(server, make_mount):
    """The start waits for them, for a limited time."""
    server.store.add(st.QUEUES, queue("default"))
    server.store.add(st.JOBS, watching.job("one", "Running"))
    server.faults.add("silent", times=100, verb="list", resource="queues")
    kx = make_mount(server)
    assert kx.ls("jobs") == ["one"] and not (kx / "queues").exists()


# --- missing rights ---


@pytest.mark.parametrize("resource", ["podgroups", "events", "queues"])
def test_forbidden(server, make_mount, resource):
    """Each right alone: the mount works, reports the refusal, and has everything else."""
    server.forbidden.append({"resource": resource})
    server.store.add(st.QUEUES, queue("default"))
    Waiting(server)
    kx = make_mount(server)
    harness.wait_for(lambda: info(kx)["refused"], what="the refusal")
    found = info(kx)["refused"]
    assert {one["resource"].split(".")[0] for one in found} == {resource}
    assert len(found) == 1
    assert found[0]["verb"] == "list" and found[0]["cost"] and "may not list" in found[0]["answer"]
    assert found[0]["answer"].splitlines()[1:], "what to do stands on a line of its own"
    assert kx.read("jobs/gang/state") == "PENDING\n"
    if resource == "queues":
        harness.wait_for(lambda: why(kx) == WHY_FULL, what="why")
    else:
        harness.wait_for(lambda: why(kx) == f"The job waits: the reason is not known. This user may not list "
                                            f"and watch {resource}, which would show the reason: ask for "
                                            f"that right.\n", what="what would tell more")
        harness.wait_for(lambda: (kx / "queues/default/status").exists(), what="the queue")
    if resource == "events":
        assert not (kx / "jobs/gang/events").exists()
    else:
        harness.wait_for(lambda: (kx / "jobs/gang/events").exists(), what="events")
    assert (kx / "queues").exists() == (resource != "queues")


def test_withdrawn(server, make_mount):
    """Objects that may not be read any more are not shown as if they were current."""
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
    # There is none until the mount's own queue has arrived.
    harness.wait_for(lambda: (kx / "queues/default").exists() and kx.ls("queues") == ["default"],
                     what="queues/ without the other")


def test_not_served(server, make_mount):
    """A cluster without them: no refusal is reported, and no empty list is shown."""
    server.uninstall(st.PODGROUPS, st.QUEUES)
    server.store.add(st.JOBS, watching.job("one", "Pending"))
    kx = make_mount(server)
    harness.wait_for(lambda: (kx / "jobs/one/events").exists(), what="events")
    harness.wait_for(lambda: server.count(verb="list", resource="events") == 1, what="its list")
    assert info(kx)["refused"] == [] and not (kx / "queues").exists()


def test_time_limit(server, make_mount):
    """The node's message about a pod that ran too long is replaced by the name of its time limit."""
    tree = watching.job("slow", "Running")
    tree["spec"]["tasks"][0]["template"]["spec"]["activeDeadlineSeconds"] = 14400
    job = server.store.add(st.JOBS, tree)
    pod = watching.pod(job, "main", 0, "Running")
    pod["spec"]["activeDeadlineSeconds"] = 14400
    pod["status"]["startTime"] = "2026-11-21T09:00:00Z"
    server.store.add(st.PODS, pod)
    kx = make_mount(server)
    slow = harness.Job(kx, "slow")
    slow.until("RUNNING")
    assert (slow.status()["time_limit"], slow.status()["deadline"]) == (14400, "2026-11-21T13:00:00Z")
    assert "\ndeadline: 2026-11-21T13:00:00Z\n" in slow.read("main-0", "status")

    def end(tree):
        tree["status"].update(phase="Failed", reason="DeadlineExceeded",
                              message="Pod was active on the node longer than the specified deadline")
        tree["status"]["containerStatuses"][0]["state"] = {"terminated": {
            "exitCode": 137, "reason": "Error", "startedAt": st.now(), "finishedAt": st.now()}}

    server.store.change(st.PODS, "test", "slow-main-0", end)
    server.store.change(st.JOBS, "test", "slow", lambda tree: tree["status"]["state"].update(phase="Failed"))
    slow.finish("FAILED")
    harness.wait_for(lambda: slow.status()["reason"] == "DeadlineExceeded", what="the pod's word")
    assert why(kx, "slow").startswith("main-0 ran longer than its limit of 4h. It was not retried")
    assert (slow.status()["time_limit"], slow.status()["deadline"]) == (14400, None)


def test_memory(kx, volcano):
    """A replica that was ended for its memory: its limit and its pod's resources are shown; unknown values are null."""
    job = kx.submit(harness.app("true", resource={"cpu": 4, "memMB": 16000, "gpu": 2}))
    (pod,) = volcano.start(job.id)
    job.until("RUNNING")
    usage = job.status()["usage"]
    assert usage["cpu"] == {"requested_millicores": 3900, "seconds": None, "now_millicores": None,
                            "efficiency_percent": None}
    assert usage["memory"] == {"requested_bytes": 14_976_000_000, "limit_bytes": 16_000_000_000, "now_bytes": None,
                               "peak_bytes": None, "kind": None}
    assert usage["gpu"] == {"requested": 2}
    assert [usage[key] for key in ("source", "samples", "first", "last", "elapsed_seconds")] == [None] * 5
    volcano.finish(pod, 137, "OOMKilled")
    job.finish("FAILED")
    said = "main-0 was ended because it used more memory than its limit of 14.9 GiB. Role main needs more memory, " \
           "or must use less."
    harness.wait_for(lambda: job.read("why").startswith(said), what=said)
    after = job.status()["usage"]
    assert after["elapsed_seconds"] >= 0 and after["memory"] == usage["memory"]
    assert yaml.safe_load(job.read("main-0", "usage"))["gpu"] == {"requested": 2}
    volcano.remove_pods(job.id)
    kx.restart()
    assert job.read("why").startswith(said) and job.status()["usage"]["memory"] == usage["memory"]
