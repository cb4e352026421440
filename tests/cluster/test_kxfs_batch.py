# SPDX-License-Identifier: MIT
"""Mounts of batch Jobs, on a separate cluster with nothing else installed, with the rights of
contrib/rbac.yaml. Kubernetes' own controller runs the Jobs."""

import collections
import json
import random
import signal
import sys
import threading
import time

import api
import pytest
from cluster import HERE, Cluster
from harness import LIMIT, actions, decided, err_of, rmdir, wait_for, write_ctl
from mounted import HOLD, IMAGE, SMALL, PretendNode, World, app, begun, ended, phase

sys.path[1:1] = [str(HERE.parent / "golden")]

from golden import Input, load, run  # noqa: E402
from test_job import CASES, options_of  # noqa: E402

GPU = {**SMALL, "gpu": 1}  # only the fake node has this resource


class Batch(World):
    def jobs(self):
        return {job["metadata"]["name"]: job for job in self.cluster.client.items(self.path("jobs.batch"))}

    def pods(self, job):
        return [pod for pod in self.cluster.client.items(self.path("pods"))
                if (pod["metadata"].get("labels") or {}).get("batch.kubernetes.io/job-name") == job
                and "deletionTimestamp" not in pod["metadata"]]


@pytest.fixture(scope="module")
def cluster():
    with Cluster(volcano=False) as own:
        yield own


@pytest.fixture
def namespace(cluster):
    name = "kxfs-batch"
    if not cluster.is_served(f"/api/v1/namespaces/{name}"):
        cluster.kubectl("create", "namespace", name)
    wait_for(lambda: cluster.has_account(name), what=f"the namespace {name}")
    yield name
    for resource in ("cronjobs", "jobs.batch", "pods"):
        cluster.client.delete(api.path_of(resource, name) + "?propagationPolicy=Background&gracePeriodSeconds=0")


@pytest.fixture
def world(cluster, namespace):
    return Batch(cluster, namespace)


@pytest.fixture
def kx(make_kx, world, limited):
    """Mount without naming a backend: such a cluster has only Jobs."""
    def make(options=""):
        return make_kx(options, source=world.namespace, env={"KUBECONFIG": str(limited)})

    return make


def test_array(kx, world):
    """Two indexes run at a time. One fails for good, and the others continue. Each pod gets its
    index."""
    mount = kx()
    text = app(HOLD, num_replicas=3, retry_policy="REPLICA", args={"parallelism": 2})
    job = mount.submit(text)
    begun(job)
    world.release(begun(job, "main-1"), 3)
    pod = begun(job, "main-2")
    assert job.state() == "RUNNING" and "main-1 ended with exit code 3" in job.read("why")
    role = job.status()["roles"][0]
    assert [role[key] for key in ("running", "waiting", "succeeded", "failed")] == [2, 0, 0, 1]
    world.release(job.replica()["pod"])
    world.release(pod)
    ended(job, "FAILED")
    phase(job, "Failed")
    assert [job.replica(f"main-{i}")["state"] for i in range(3)] == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert job.read("main-1", "log") == "begin\nend\n"
    assert len(world.jobs()) == 1
    job.cancel()
    wait_for(lambda: not world.jobs() and not world.pods(job.id), what="it to go")
    again = mount.submit(mount.read("history", job.id, "manifest.yaml"), name="again.yaml")
    begun(again)


def test_retry(kx, world):
    """A retry of one replica, and of a job with a single replica."""
    mount = kx()
    pair = mount.submit(app(HOLD, num_replicas=2, retry_policy="REPLICA", max_retries=1), name="pair.yaml")
    one = mount.submit(app(HOLD, max_retries=1), name="one.yaml")
    other = begun(pair, "main-1")
    world.release(begun(pair), 7)
    world.release(begun(one), 7)
    wait_for(lambda: "It will be restarted soon" in one.read("why"), what="why")
    world.release(begun(one, attempt=1), 8)
    again = begun(pair, attempt=1)
    assert pair.state() == "RUNNING" and pair.replica("main-1")["pod"] == other
    world.release(again)
    world.release(other)
    ended(pair)
    ended(one, "FAILED")
    assert pair.read("main-0", "log.0") == pair.read("main-0", "log") == "begin\nend\n"
    wait_for(lambda: "Retries used: 1; max_retries is 1" in one.read("why"), what="the retry to be told")


def made(world, name, script, **spec):
    """Create a Job with one container, as kubectl would."""
    policy = spec.pop("restartPolicy", "Never")
    world.cluster.client.post(world.path("jobs.batch"), {"metadata": {"name": name}, "spec": {**spec, "template": {"spec": {
        "restartPolicy": policy, "containers": [{"name": "c", "image": IMAGE, "command": ["sh", "-c", script]}]}}}})


def test_restarts_are_retries(kx, world):
    """With restartPolicy OnFailure, the kubelet restarts the container. The controller stops the
    run after the last retry."""
    mount = kx("capture=all")
    made(world, "again", "trap 'exit 143' TERM; echo try; for i in $(seq 30); do sleep 0.1; done; echo no data; exit 3",
         restartPolicy="OnFailure", backoffLimit=2)
    wait_for(lambda: "again" in mount.ls("jobs"), what="the job")
    job, = mount.jobs()
    wait_for(lambda: job.status()["retries"] == 1, what="a retry")
    ended(job, "FAILED")
    wait_for(lambda: "Its last output" in job.read("why"), what="its last words")
    status, replica = job.status(), job.replica("c-0")
    assert (status["retries"], status["max_retries"], status["reason"]) == (2, 2, "Error")
    assert (replica["state"], replica["exit_code"], replica["attempt"]) == ("FAILED", 3, 2)
    log, = (name for name in ("log", "log.1") if f"Its output is in c-0/{name}. " in job.read("why"))
    assert job.read("c-0", log) == "try\nno data\n"
    assert job.read("why").startswith("c-0 ended with exit code 3. Retries used: 2; max_retries is 2.")
    assert job.read("why").endswith("Its last output:\n    try\n    no data\n")


def test_failure_policy(kx, world):
    """`why` names the rule that ended a Job. Pods that the controller deletes for that are not
    retries."""
    mount = kx()
    made(world, "ruled", "[ $JOB_COMPLETION_INDEX = 1 ] && exit 42; " + HOLD, completionMode="Indexed", completions=3,
         parallelism=3, podFailurePolicy={"rules": [
             {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
             {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]})
    wait_for(lambda: "ruled" in mount.ls("jobs"), what="the job")
    job, = mount.jobs()
    ended(job, "FAILED")
    wait_for(lambda: job.read("why").startswith(
        "c-1 ended with exit code 42. The job was not retried, because rule 1 of its podFailurePolicy forbids retries."), what="why")
    assert job.status()["retries"] == 0 and world.jobs()["ruled"]["status"]["failed"] == 3


def test_ctl(kx, world):
    mount = kx()
    job, other = mount.submit(app(HOLD)), mount.submit(app(HOLD), name="other.yaml")
    begun(job)
    begun(other)
    phase(job, "Running")
    assert actions(job) == ["suspend", "terminate"]
    write_ctl(job, "suspend")
    phase(job, "Suspended")
    assert job.state() == "CANCELLED" and actions(job) == ["resume"]
    wait_for(lambda: not world.pods(job.id), what="its pod to be gone")
    assert err_of(write_ctl, job, "terminate") == "EINVAL"
    write_ctl(other, "terminate")
    ended(other, "FAILED")
    phase(other, "Terminated")
    assert "it was terminated through ctl" in other.read("why") and other.read("main-0", "log").startswith("begin\n")
    write_ctl(job, "resume")
    world.release(begun(job, attempt=1))
    job.finish()
    assert job.read("main-0", "log.0").startswith("begin\n") and job.read("main-0", "log") == "begin\nend\n"


def test_of_others(kx, world):
    """Jobs that others created: kubectl's, which has one pod and is retried, and one with several
    pods without indexes."""
    mount = kx()
    world.cluster.kubectl("create", "job", "theirs", f"--image={IMAGE}", "-n", world.namespace, "--", "sh", "-c", HOLD)
    world.cluster.client.post(world.path("jobs.batch"), {
        "metadata": {"name": "several"}, "spec": {"completions": 2, "parallelism": 2, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": IMAGE, "command": ["sh", "-c", HOLD]}]}}}})
    wait_for(lambda: {"theirs", "several"} <= set(mount.ls("jobs")), what="the jobs")
    jobs = {job.id: job for job in mount.jobs()}
    world.release(begun(jobs["theirs"], "theirs-0"), 5)
    begun(jobs["several"], "c-1")
    begun(jobs["several"], "c-0")
    world.release_all("several")
    ended(jobs["several"])
    world.release(begun(jobs["theirs"], "theirs-0", 1))
    ended(jobs["theirs"])
    assert jobs["theirs"].read("theirs-0", "log.0") == "begin\nend\n"
    assert [jobs["several"].read(f"c-{i}", "log") for i in range(2)] == ["begin\nend\n"] * 2


def test_cron(kx, world):
    """A CronJob's Job is shown with its owner, and can be removed. The CronJob creates more."""
    mount = kx("cancel=all")
    client, path = world.cluster.client, world.path("cronjobs", "nightly")
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": IMAGE, "command": ["sh", "-c", HOLD]}]}}
    client.post(world.path("cronjobs"), {"metadata": {"name": "nightly"}, "spec": {
        "schedule": "* * * * *", "suspend": True, "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": {"template": template}}}})
    # The last run was five minutes ago, so the CronJob is late.
    client.merge(path + "/status", {"status": {"lastScheduleTime": time.strftime(
        "%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 300))}})
    client.merge(path, {"spec": {"suspend": False}})
    wait_for(lambda: mount.ls("jobs"), what="its Job")
    client.merge(path, {"spec": {"suspend": True}})
    job, = mount.jobs()
    assert job.id.startswith("nightly-") and job.status()["owner"] == "CronJob/nightly"
    begun(job, "c-0")
    rmdir(job.dir)
    wait_for(lambda: not world.jobs() and not world.pods(job.id), what="it to go")
    assert client.get(path) and mount.read("history", job.id, "log").endswith("begin\n")


def test_thousand(kx, world):
    """An array of 1 000 replicas, 50 at a time. Some fail for good, and the others continue."""
    bad, go = {7, 8, 500}, threading.Event()
    mount = kx("capture=none")

    def index(pod):
        return int(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])

    def code(pod):
        return 3 * (index(pod) in bad) if go.is_set() else None

    def counts():
        role = job.status()["roles"][0]
        return [role[key] for key in ("desired", "running", "waiting", "succeeded", "failed")]

    with PretendNode(world.cluster, code) as node:
        job = mount.submit(app("true", num_replicas=1000, resource=GPU, retry_policy="REPLICA", args={"parallelism": 50}))
        assert len(json.dumps(world.jobs()[job.id])) < 20000
        wait_for(lambda: counts() == [1000, 50, 950, 0, 0], what="50 of them to run")
        head, row = mount.read("list").splitlines()
        assert row.split()[head.split().index("READY")] == "50/1000"
        go.set()
        job.finish("FAILED", timeout=600)
        wait_for(lambda: counts() == [1000, 0, 0, 997, 3], what="all to be counted")
        assert sorted(map(index, world.pods(job.id))) == list(range(1000)) and node.most == 50
    assert job.status()["reason"] == "Error" and "first of 3 failed replicas: 7-8, 500." in job.read("why")
    assert [job.replica(f"main-{i}")["state"] for i in (0, 7, 500, 999)] == ["SUCCEEDED", "FAILED", "FAILED", "SUCCEEDED"]


def test_killed_among_a_hundred(kx, world, pytestconfig):
    """kxfs is killed repeatedly while a hundred files are written. A job is launched exactly once
    if its writer saw success, and at most once otherwise."""
    seed = pytestconfig.getoption("--seed") or random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    mount = kx()
    todo, turns, accepted = [f"j{i}" for i in range(100)], threading.Semaphore(0), []

    def write():
        while turns.acquire() and todo:
            name = todo.pop()
            text = app("true", name=name, resource=GPU)
            if err_of(mount.write, f"submit/{name}.yaml", text) == "":
                accepted.append(name)
            time.sleep(0.02)

    writers = [threading.Thread(target=write, daemon=True) for _ in range(4)]
    for writer in writers:
        writer.start()
    # About ten names are written around each kill, however fast that is.
    for _ in range(10):
        turns.release(10)
        time.sleep(rng.uniform(0, 1.5))
        mount.restart(signal.SIGKILL)
    wait_for(lambda: not todo, what="each writer has its name")
    turns.release(len(writers))
    for writer in writers:
        writer.join(LIMIT)
    wait_for(lambda: decided(mount) == set(world.jobs()), what="the same jobs here and there")
    print("10 kills")
    launched = collections.Counter(name.rsplit("-", 1)[0] for name in world.jobs())
    assert max(launched.values()) == 1 and set(accepted) <= set(launched), launched
    assert len(accepted) > 20, "most kills meet no launch"
    assert all("app.yaml" in mount.ls("jobs", name) for name in world.jobs()), "each is ours"


def test_all_accepted(world):
    """The server's strict dry run accepts every AppDef of tests/golden that becomes a Job."""
    made, refused = 0, {}
    for name in CASES:
        source = Input(name)
        options, namespace = options_of(source)
        status, text, _ = run("job", source.path, namespace, options)
        if status:
            continue
        made += 1
        job = load(text)
        job["metadata"]["namespace"] = world.namespace
        try:
            world.cluster.client.post(f"{world.path('jobs.batch')}?dryRun=All&fieldValidation=Strict", job)
        except api.Refused as e:
            refused[name] = e.message
    assert made > len(CASES) / 4
    assert set(refused) == {"207-new-overlay-flat-spec"}, refused
