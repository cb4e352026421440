# SPDX-License-Identifier: MIT
"""Mounts of all kinds of jobs that a cluster serves: which objects are shown as jobs and which are parts of jobs,
ids of jobs with equal names, the kind of a submitted file, and kinds that are missing, forbidden, failing, installed
or removed."""

import errno
import json
import os
import re
import signal
import time

import harness
import pytest
import records
import replies
import store as st
import yaml
from fakes import FakeJob, FakeJobSet, FakeVolcano
from harness import err_of, wait_for
from preload import Clock

ROLE = {"name": "main", "image": "i", "entrypoint": "e", "num_replicas": 1}
APP = {"name": "app", "roles": [ROLE]}
POD = {"metadata": {"labels": {}}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
JOB = {"completions": 1, "parallelism": 1, "completionMode": "Indexed", "template": POD}
SPECS = {
    st.JOBS: {"minAvailable": 1, "queue": "default", "tasks": [{"name": "main", "replicas": 1, "template": POD}]},
    st.JOBSETS: {"replicatedJobs": [{"name": "main", "template": {"spec": JOB}}]},
    st.BATCH_JOBS: JOB,
    st.NEW_APPWRAPPERS: {"components": []},
}


@pytest.fixture
def server(server):
    """A server that serves all kinds."""
    server.install(st.NEW_APPWRAPPERS, st.JOBSETS, st.BATCH_JOBS)
    return server


@pytest.fixture(autouse=True)
def controllers(server):
    return {st.JOBS: FakeVolcano(server), st.JOBSETS: FakeJobSet(server), st.BATCH_JOBS: FakeJob(server)}


@pytest.fixture
def all_kinds(make_mount, server):
    """Return a function that mounts all kinds."""
    return lambda options="cancel=all", **kwargs: make_mount(server, source="test", options=options, **kwargs)


def add(server, resource, name, owner=None, **spec):
    """Add an object of RESOURCE and return it. OWNER is (apiVersion, kind, name, uid) of its controller."""
    meta = {"name": name, "namespace": "test"}
    if owner:
        meta["ownerReferences"] = [
            dict(zip(("apiVersion", "kind", "name", "uid"), owner, strict=True), controller=True)]
    return server.store.add(resource, {"metadata": meta, "spec": {**SPECS[resource], **spec}})


def shown(kx):
    return {name for name in kx.ls("jobs") if not name.startswith(".")}


def info(kx):
    return yaml.safe_load(kx.read(".kxfs", "info"))


def prints(controller, kx, name, text, ident=None):
    """Start the job NAME, let its pod print TEXT, and wait until the mount shows TEXT in its log.
    IDENT is the id of the job, if it is not NAME."""
    pod, = controller.start(name)
    controller.log(pod).append(text)
    wait_for(lambda: kx.read("jobs", ident or name, "main-0/log") == text, what=f"the log of {name}")


def kinds_in(kx):
    """Return the kinds that .kxfs/info lists."""
    return [one["kind"] for one in info(kx)["kinds"]]


def is_stale(kx, name):
    return harness.Job(kx, name).status()["stale_since"] is not None


def until_shown(kx, *names):
    wait_for(lambda: shown(kx) == set(names), what=f"{names} in jobs/")


def test_all_are_shown(server, controllers, all_kinds):
    """Each job is shown with its pods, even those that are created later. Pods without a job are not shown."""
    server.store.add(st.PODS, {"metadata": {"name": "web-1", "namespace": "test", "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r-1", "controller": True}]},
        "spec": POD["spec"]})
    for resource, name in ((st.JOBS, "volcanic"), (st.JOBSETS, "many"), (st.BATCH_JOBS, "one")):
        add(server, resource, name)
    kx = all_kinds()
    add(server, st.NEW_APPWRAPPERS, "wrapped")
    until_shown(kx, "volcanic", "many", "one", "wrapped")
    for resource, name in ((st.JOBS, "volcanic"), (st.JOBSETS, "many"), (st.BATCH_JOBS, "one")):
        prints(controllers[resource], kx, name, f"I am {name}\n")
        harness.Job(kx, name).until("RUNNING")
    kinds = {name: harness.Job(kx, name).status()["kind"] for name in shown(kx)}
    assert kinds == {"volcanic": "volcano", "many": "jobset", "one": "job", "wrapped": "appwrapper"}
    assert {row["id"]: row["kind"] for row in map(json.loads, kx.read("list.jsonl").splitlines())} == kinds
    head, *rows = kx.read("list").splitlines()
    at = head.split().index("KIND")
    assert {row.split()[0]: row.split()[at] for row in rows} == kinds
    said = info(kx)
    assert (said["backend"], said["default_kind"]) == ("all", "volcano") and "api" not in said
    assert said["kinds"] == [{"kind": "volcano", "api": "batch.volcano.sh/v1alpha1"},
                             {"kind": "appwrapper", "api": "workload.codeflare.dev/v1beta2"},
                             {"kind": "jobset", "api": "jobset.x-k8s.io/v1alpha2"}, {"kind": "job", "api": "batch/v1"}]
    assert said["passed_over"] == 0 and said["refused"] == []


def test_one_kind_as_before(server, make_mount):
    """A mount whose SOURCE names a kind shows only this kind, even if the jobs are parts of other jobs. Its list has no
    column for the kind."""
    add(server, st.JOBSETS, "set")
    add(server, st.BATCH_JOBS, "part", owner=("jobset.x-k8s.io/v1alpha2", "JobSet", "set", "s-1"))
    kx = make_mount(server, source="job:test")
    until_shown(kx, "part")
    assert "KIND" not in kx.read("list") and info(kx)["kinds"] == [{"kind": "job", "api": "batch/v1"}]
    assert harness.Job(kx, "part").status()["owner"] == "JobSet/set"


def test_parts_are_not_shown(server, controllers, all_kinds):
    """Jobs of a JobSet and the contents of an AppWrapper are not shown as jobs of their own. Objects with any other
    owner are shown, and so is the owner's name."""
    jobset = add(server, st.JOBSETS, "set", suspend=True)
    wrapper = add(server, st.NEW_APPWRAPPERS, "wrapper")
    in_set = ("jobset.x-k8s.io/v1alpha2", "JobSet", "set", jobset.uid)
    in_wrapper = ("workload.codeflare.dev/v1beta2", "AppWrapper", "wrapper", wrapper.uid)
    add(server, st.BATCH_JOBS, "set-main-0", owner=in_set)
    add(server, st.JOBSETS, "wrapped-set", owner=in_wrapper)
    add(server, st.BATCH_JOBS, "wrapped-job", owner=in_wrapper)
    kx = all_kinds()
    add(server, st.JOBS, "wrapped-volcano", owner=in_wrapper)
    add(server, st.BATCH_JOBS, "of-cron-1", owner=("batch/v1", "CronJob", "of-cron", "c-1"))
    add(server, st.JOBSETS, "train", owner=("trainer.kubeflow.org/v1alpha1", "TrainJob", "train", "t-1"))
    until_shown(kx, "set", "wrapper", "of-cron-1", "train")
    assert harness.Job(kx, "train").status()["owner"] == "TrainJob/train"
    assert harness.Job(kx, "of-cron-1").status()["owner"] == "CronJob/of-cron"
    # kxfs shows the pods as the JobSet's, not as those of the Job that created them, although the mount shows Jobs, too.
    controllers[st.JOBSETS].say("set")
    assert kx.read("jobs/set/state") in ("SUBMITTED\n", "PENDING\n", "CANCELLED\n")
    # kxfs does not remove a job that its owner would create again. The message names a command that deletes both.
    assert err_of(os.rmdir, kx / "jobs/train") == "EPERM"
    assert "to delete both, run kubectl -n test delete TrainJob train" in kx.read(".kxfs", "log")
    assert server.store.find(st.JOBSETS, "test", "train")
    harness.rmdir(kx / "jobs/of-cron-1")
    assert not server.store.find(st.BATCH_JOBS, "test", "of-cron-1")
    assert shown(kx) == {"set", "wrapper", "train"}


def test_owner_in_kueue(server, all_kinds):
    """A TrainJob waits in Kueue. Its JobSet is suspended, PENDING, and has the reason that Kueue reports for the
    TrainJob."""
    server.install(*st.KUEUE)
    add(server, st.JOBSETS, "train", owner=("trainer.kubeflow.org/v1alpha1", "TrainJob", "train", "t-1"), suspend=True)
    kx = all_kinds()
    server.store.change(st.JOBSETS, "test", "train", lambda tree: tree.update(status={"conditions": [
        {"type": "Suspended", "status": "True", "reason": "SuspendedJobs", "lastTransitionTime": st.now()}]}))
    job = harness.Job(kx, "train")
    job.until("PENDING")
    waiting = {"type": "QuotaReserved", "status": "False", "reason": "Inadmissible",
               "message": "LocalQueue team doesn't exist"}
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "train", "uid": "t-1", "controller": True}
    server.store.add(st.WORKLOADS, {"metadata": {"name": "trainjob-train", "namespace": "test", "ownerReferences": [owner]},
                                    "spec": {"queueName": "team"}, "status": {"conditions": [waiting]}})
    wait_for(lambda: "Kueue: \"LocalQueue team doesn't exist\"" in job.read("why"), what="Kueue's word in why")
    assert job.state() == "PENDING" and job.status()["queue"] == "team"


def test_names_that_meet(server, controllers, all_kinds):
    """If jobs of two kinds have the same name, the second is called NAME~KIND as long as it exists. Actions on it
    affect only this job."""
    add(server, st.BATCH_JOBS, "same")
    kx = all_kinds("cancel=all,capture=all")
    until_shown(kx, "same")
    add(server, st.JOBSETS, "same")
    add(server, st.JOBS, "same")
    until_shown(kx, "same", "same~jobset", "same~volcano")
    for resource, ident in ((st.BATCH_JOBS, "same"), (st.JOBSETS, "same~jobset")):
        prints(controllers[resource], kx, "same", f"{ident}\n", ident)
        assert harness.Job(kx, ident).status()["id"] == ident
    # When the first job is gone, the second keeps its id, even after a remount, because the state
    # directory has a folder for this id. The next new job of this name gets the free name.
    harness.rmdir(kx / "jobs/same")
    assert not server.store.find(st.BATCH_JOBS, "test", "same") and server.store.find(st.JOBSETS, "test", "same")
    until_shown(kx, "same~jobset", "same~volcano")
    wait_for(lambda: kx.folder("same~jobset").exists() and kx.read("history/same/log"), what="folders")
    wait_for(lambda: records.of(kx, "same~jobset").exists(), what="the snapshot on disk")
    kx.restart()
    assert "same~jobset" in shown(kx)
    assert kx.read("jobs/same~jobset/main-0/log") == "same~jobset\n"
    harness.write_ctl(kx / "jobs/same~jobset", "suspend")
    wait_for(lambda: server.store.find(st.JOBSETS, "test", "same").tree()["spec"]["suspend"], what="the patch")
    harness.rmdir(kx / "jobs/same~jobset")
    assert not server.store.find(st.JOBSETS, "test", "same") and server.store.find(st.JOBS, "test", "same")
    wait_for(lambda: kx.read("history/same~jobset/main-0/log") == "same~jobset\n", what="its output in the history")


def test_the_older_has_the_name(server, all_kinds):
    """Of jobs that existed before the mount, the oldest has the plain name, no matter which list arrives first."""
    for resource, second in ((st.JOBS, 3), (st.JOBSETS, 1), (st.BATCH_JOBS, 2)):
        add(server, resource, "same")
        server.store.change(resource, "test", "same", lambda tree, s=second: tree["metadata"].update(
            creationTimestamp=f"2026-01-01T00:00:0{s}Z"))
    kx = all_kinds()
    assert {name: harness.Job(kx, name).status()["kind"] for name in shown(kx)} == {
        "same": "jobset", "same~job": "job", "same~volcano": "volcano"}


def test_what_a_file_becomes(server, all_kinds):
    """A file becomes a job of the kind that its `scheduler` or its apiVersion names. `scheduler`
    can be kxfs's or TorchX's name of the kind. If a file has neither, it becomes a job of the first
    kind that the cluster serves."""
    kx = all_kinds("queue=default")
    for scheduler, resource in ((None, st.JOBS), ("kubernetes", st.JOBS), ("appwrapper", st.NEW_APPWRAPPERS),
                                ("kubernetes_mcad", st.NEW_APPWRAPPERS), ("jobset", st.JOBSETS), ("job", st.BATCH_JOBS)):
        kx.write("submit/app.yaml", json.dumps({**APP, **({"scheduler": scheduler} if scheduler else {})}))
        job = kx.job_of("app.yaml")
        assert server.store.find(resource, "test", job.id), scheduler
        manifest = yaml.safe_load(job.read("manifest.yaml"))
        kx.write("submit/again.yaml", yaml.safe_dump(manifest))
        again = kx.job_of("again.yaml").id
        assert again != job.id and server.store.find(resource, "test", again), scheduler
    kx.write("dryrun/app.yaml", json.dumps({**APP, "scheduler": "job"}))
    assert yaml.safe_load(kx.read("dryrun/app.yaml"))["kind"] == "Job"
    assert err_of(kx.write, "submit/app.yaml", json.dumps({**APP, "scheduler": "local"})) == "EINVAL"
    assert err_of(kx.write, "submit/app.yaml", json.dumps({**APP, "scheduler": "mcat"})) == "EINVAL"


def test_a_name_of_another_kind(server, all_kinds):
    """If a job of another kind has the document's own name, kxfs does not mistake it for the submitted job."""
    kx = all_kinds()
    add(server, st.JOBSETS, "mine")
    until_shown(kx, "mine")
    kx.write("submit/mine.yaml", yaml.safe_dump({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "mine"}, "spec": JOB}))
    job = kx.job_of("mine.yaml")
    assert re.fullmatch("mine-[a-z0-9]+", job.id) and job.status()["kind"] == "job"


def test_the_first_that_is_served(make_mount, server, controllers):
    """A plain cluster serves only Jobs, so a file becomes a Job. kxfs does not request pods of other kinds."""
    server.uninstall(*st.VOLCANO, st.NEW_APPWRAPPERS, st.JOBSETS)
    kx = make_mount(server, source="test")
    assert info(kx)["default_kind"] == "job"
    kx.write("submit/app.yaml", json.dumps(APP))
    job = kx.job_of("app.yaml")
    controllers[st.BATCH_JOBS].start(job.id)
    job.until("RUNNING")
    assert job.status()["kind"] == "job" and "KIND" not in kx.read("list")
    # Requests for the pod of a log don't count; they name the pod.
    pods = [request for request in server.seen(verb="list", resource="pods") if "fieldSelector" not in request.query]
    assert pods and all("batch.kubernetes.io" in request.query["labelSelector"] for request in pods)
    assert err_of(kx.write, "submit/app.yaml", json.dumps({**APP, "scheduler": "jobset"})) == "EINVAL"
    assert "is jobset, which this mount does not show; this mount submits jobs to job" in kx.read("submit/app.yaml.error")


def test_one_may_not_be_listed(server, all_kinds):
    """If one kind is forbidden, all others are shown. If JobSets are forbidden, their Jobs are shown, because they
    are then not parts of a shown job."""
    server.forbidden.append({"resource": "jobsets"})
    add(server, st.JOBSETS, "set")
    add(server, st.BATCH_JOBS, "set-main-0", owner=("jobset.x-k8s.io/v1alpha2", "JobSet", "set", "s-1"))
    add(server, st.JOBS, "volcanic")
    kx = all_kinds()
    until_shown(kx, "set-main-0", "volcanic")
    said = info(kx)
    assert kinds_in(kx) == ["volcano", "appwrapper", "job"]
    refused, = said["refused"]
    assert (refused["verb"], refused["resource"], refused["cost"]) == (
        "list", "jobsets.jobset.x-k8s.io", "jobs of this kind are not shown")
    assert "forbidden" in refused["answer"]


@pytest.fixture
def trouble(server):
    """A function that lets all requests for JobSets fail, and returns a function that ends this."""
    def make():
        fault = server.faults.add("reply", times=100000, resource="jobsets",
                                  reply=replies.internal("conversion webhook for jobset.x-k8s.io failed"))
        server.end_streams("reset", verb="watch", resource="jobsets")
        return lambda: server.faults.clear(fault)
    return make


def test_one_is_in_trouble(server, controllers, all_kinds, trouble):
    """If the requests for one kind fail, only jobs of this kind become stale. All jobs are current
    again once the requests succeed."""
    add(server, st.JOBS, "volcanic")
    add(server, st.JOBSETS, "set")
    kx = all_kinds("capture=all")
    until_shown(kx, "volcanic", "set")
    prints(controllers[st.JOBSETS], kx, "set", "before\n")
    wait_for(lambda: records.of(kx, "set").exists(), what="the snapshot on disk")
    mend = trouble()
    wait_for(lambda: is_stale(kx, "set"), what="its being stale")
    assert not is_stale(kx, "volcanic")
    assert info(kx)["connected"] is True and "stale_since" not in kx.read("list")
    trouble = {one["kind"]: one.get("trouble") for one in info(kx)["kinds"]}
    assert "webhook" in trouble["jobset"] and trouble["volcano"] is None
    # A new mount shows these jobs as they were last known, and all others as they are now.
    kx.restart()
    until_shown(kx, "volcanic", "set")
    assert is_stale(kx, "set") and kx.read("jobs/set/main-0/log") == "before\n"
    add(server, st.BATCH_JOBS, "later")
    until_shown(kx, "volcanic", "set", "later")
    mend()
    wait_for(lambda: not is_stale(kx, "set"), what="its being confirmed")
    assert kx.read("jobs/set/state") == "RUNNING\n"
    # If the next mount may not list this kind, it shows these jobs as this mount has seen them.
    server.forbidden.append({"resource": "jobsets"})
    kx.restart()
    until_shown(kx, "volcanic", "set", "later")
    assert is_stale(kx, "set") and kx.read("jobs/set/main-0/log") == "before\n"
    assert not is_stale(kx, "volcanic")


def test_merged_log_of_one_in_trouble(server, controllers, all_kinds, trouble):
    """The merged log of a finished job lacks its end after a power cut. The next start completes it, even while the
    requests for this kind of job fail."""
    add(server, st.JOBS, "volcanic")
    add(server, st.JOBSETS, "set")
    kx = all_kinds("capture=all")
    until_shown(kx, "volcanic", "set")
    pod, = controllers[st.JOBSETS].start("set")
    controllers[st.JOBSETS].log(pod).append("one\ntwo\n")
    controllers[st.JOBSETS].finish(pod)
    controllers[st.JOBSETS].say("set", "Completed", terminalState="Completed")
    job = harness.Job(kx, "set")
    job.until("SUCCEEDED")
    text = "main/0 one\nmain/0 two\n"
    wait_for(lambda: kx.read("jobs/set/log") == text, what="the merged log")
    assert kx.end() == 0
    folder = kx.state / "output" / records.of(kx, "set").name
    (folder / "merged").write_bytes(b"")
    (folder / "unmerged").touch()
    mend = trouble()
    kx.start()
    until_shown(kx, "volcanic", "set")
    assert is_stale(kx, "set") and kx.read("jobs/set/log") == text
    assert harness.run(["cat", str(kx / "jobs/set/follow")]).stdout == text
    mend()
    wait_for(lambda: not is_stale(kx, "set"), what="its being confirmed")
    assert kx.read("jobs/set/log") == text


def test_history_of_one_in_trouble(server, controllers, all_kinds, trouble, tmp_path):
    """A mount was killed before it had all output of a removed job, and the requests for this kind of job fail at the
    next start. Once they succeed, the job has a gap. It is archived only then."""
    add(server, st.JOBS, "volcanic")
    add(server, st.JOBSETS, "set")
    kx = all_kinds(f"capture=all,archive={tmp_path}")
    until_shown(kx, "volcanic", "set")
    prints(controllers[st.JOBSETS], kx, "set", "one\n")
    controllers[st.JOBSETS].keep_pods = True
    server.store.remove(st.JOBSETS, "test", "set")
    wait_for(lambda: records.is_history(records.of(kx, "set")), what="the history")
    kx.end(signal.SIGKILL)
    controllers[st.JOBSETS].remove_pods("set")
    mend = trouble()
    kx.start()
    add(server, st.JOBS, "last")
    until_shown(kx, "volcanic", "last")
    pod, = controllers[st.JOBS].start("last")
    controllers[st.JOBS].finish(pod)
    wait_for(lambda: list(tmp_path.glob("test/*/last/status.json")), what="another job in the archive")
    assert not list(tmp_path.glob("test/*/set"))
    mend()
    copy, = wait_for(lambda: list(tmp_path.glob("test/*/set")), what="the job in the archive")
    assert (copy / "main-0/log").read_text() == "one\n"
    for status in (copy / "status.json", kx / "history/set/status.json"):
        assert json.loads(status.read_text())["roles"][0]["replicas"][0]["gap"] == 1


def test_one_goes(server, controllers, all_kinds):
    """If the definition of a kind is removed, its jobs move to history/, kxfs does not repeat requests for it, and
    all other jobs are unaffected."""
    add(server, st.JOBSETS, "set")
    add(server, st.BATCH_JOBS, "one")
    kx = all_kinds("capture=all")
    until_shown(kx, "set", "one")
    prints(controllers[st.JOBSETS], kx, "set", "last\n")
    server.uninstall(st.JOBSETS)
    server.end_streams("reset", verb="watch", resource="jobsets")
    until_shown(kx, "one")
    assert kx.read("history/set/main-0/log") == "last\n"
    assert kinds_in(kx) == ["volcano", "appwrapper", "job"]
    asked = server.count(resource="jobsets")
    add(server, st.BATCH_JOBS, "two")
    until_shown(kx, "one", "two")
    pods = controllers[st.BATCH_JOBS].start("two")
    harness.Job(kx, "two").until("RUNNING")
    assert pods and server.count(resource="jobsets") == asked


# --- ten minutes later ---

@pytest.fixture
def passing(all_kinds, server, tmp_path):
    """passing(options) returns a mount of all kinds and a function pass_(). pass_() lets ten minutes pass, so that
    kxfs repeats discovery."""
    clock = Clock(tmp_path, time.CLOCK_MONOTONIC)

    def surveys():
        return sum(req.path == "/apis" for req in list(server.requests))

    def answers(kx):
        try:
            kx.write("dryrun/app.yaml", json.dumps({**APP, "scheduler": "job"}))
        except OSError as e:
            assert e.errno == errno.EHOSTUNREACH
            return False
        return True

    def pass_(kx):
        # First wait until kxfs has processed the replies. A request in progress at the step of the clock would fail and
        # be retried.
        wait_for(lambda: answers(kx), what="an answer")
        before = surveys()
        clock.set(clock.ahead + 601)
        wait_for(lambda: surveys() > before, what="a survey")

    def make(options="cancel=all"):
        kx = all_kinds(options, env=clock.env)
        return kx, lambda: pass_(kx)

    return make


def test_one_comes(server, passing):
    """While the mount is up, the definition of a kind is installed, or the right to a kind is granted. Then kxfs shows
    its jobs."""
    server.uninstall(st.JOBSETS)
    server.forbidden.extend({"resource": resource} for resource in ("appwrappers", "jobs"))
    server.forbidden[1]["group"] = st.JOBS.group
    add(server, st.BATCH_JOBS, "one")
    kx, pass_ = passing()
    until_shown(kx, "one")
    assert kinds_in(kx) == ["job"]
    server.install(st.JOBSETS)
    add(server, st.JOBSETS, "set")
    add(server, st.NEW_APPWRAPPERS, "wrapped")
    pass_()
    until_shown(kx, "one", "set")
    server.forbidden.pop(0)
    pass_()
    until_shown(kx, "one", "set", "wrapped")
    said = info(kx)
    assert kinds_in(kx) == ["appwrapper", "jobset", "job"]
    assert said["default_kind"] == "appwrapper" and [one["resource"] for one in said["refused"]] == [
        "jobs.batch.volcano.sh"]


def test_refused_kinds(server, passing):
    """Each time kxfs repeats discovery, it requests the list of each forbidden kind again, and
    nothing else. Then it shows all kinds that are permitted by that time."""
    refused = (st.JOBS, st.NEW_APPWRAPPERS, st.JOBSETS)
    server.forbidden.extend({"resource": r.plural, "group": r.group} for r in refused)
    kx, pass_ = passing()
    assert kinds_in(kx) == ["job"]

    def asked():
        return sum(req.path == "/apis" or req.resource in refused for req in list(server.requests))

    before = asked()
    for i in range(3):
        pass_()
        wait_for(lambda n=i: asked() == before + 4 * (n + 1), what="what a survey asks")
    assert {one["resource"] for one in info(kx)["refused"]} == {r.qualified for r in refused}
    server.forbidden.clear()
    pass_()
    wait_for(lambda: len(info(kx)["kinds"]) == 4, what="all kinds")


def test_launch_of_one_in_trouble(server, controllers, passing, trouble):
    """kxfs does not learn the result of a launch, and the requests for this kind of job fail. Then kxfs does not report
    after ten minutes that the job was not launched."""
    kx, pass_ = passing()
    server.faults.add("silent", verb="create", resource="jobsets")
    (kx.base / "app.yaml").write_text(json.dumps({**APP, "scheduler": "jobset"}))
    copy = harness.popen(["cp", kx.base / "app.yaml", kx / "submit/"])
    request = wait_for(lambda: server.seen(verb="create", resource="jobsets"), what="the request")[0]
    kx.end(signal.SIGKILL)
    assert copy.wait(harness.LIMIT) == 1
    kx.start()
    (name,) = wait_for(lambda: shown(kx), what="the job")
    mend = trouble()
    wait_for(lambda: any("trouble" in one for one in info(kx)["kinds"]), what="the trouble")
    server.pass_on(request)
    for _ in range(3):
        pass_()
    assert shown(kx) == {name} and kx.history() == []
    mend()
    controllers[st.JOBSETS].start(name)
    job = harness.Job(kx, name)
    wait_for(lambda: job.state() == "RUNNING", what="the job")
    assert kx.job_of("app.yaml").id == name and kx.history() == []


def test_one_goes_for_a_while(server, controllers, passing):
    """While the definition of a kind is removed, its jobs are first stale and then in history/, and
    kxfs sends only few requests. When the definition is back, the jobs are shown again."""
    add(server, st.JOBSETS, "set")
    add(server, st.BATCH_JOBS, "one")
    kx, pass_ = passing("capture=all")
    until_shown(kx, "set", "one")
    prints(controllers[st.JOBSETS], kx, "set", "last\n")
    # The server still lists the kind, as it does while a definition is being removed.
    fault = server.faults.add("reply", times=100000, resource="jobsets", reply=replies.not_served())
    server.end_streams("reset", verb="watch", resource="jobsets")
    wait_for(lambda: is_stale(kx, "set"), what="its being stale")
    server.uninstall(st.JOBSETS)
    server.faults.clear(fault)
    pass_()
    until_shown(kx, "one")
    assert kx.read("history/set/main-0/log") == "last\n" and kx.read(".kxfs", "log").count("no longer serves") == 1
    asked = server.count(resource="jobsets")
    for _ in range(3):
        pass_()
    wait_for(lambda: info(kx)["connected"], what="what the last step has broken")
    assert server.count(resource="jobsets") == asked
    server.install(st.JOBSETS)
    pass_()
    until_shown(kx, "one", "set")
    assert harness.Job(kx, "set").state() == "RUNNING"
