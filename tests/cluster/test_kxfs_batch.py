# SPDX-License-Identifier: MIT
"""Mounts of batch Jobs, on a separate cluster with nothing else installed, with the rights of
contrib/rbac.yaml. Kubernetes' own controller runs the Jobs."""

import collections
import random
import signal
import sys
import threading
import time

import api
import pytest
from cluster import HERE, Cluster
from harness import LIMIT, actions, decided, err_of, rmdir, wait_for, write_ctl
from mounted import HOLD, IMAGE, SMALL, World, app, begun, ended, phase

sys.path[1:1] = [str(HERE.parent / "golden")]

from golden import Input, load, run  # noqa: E402
from test_job import CASES, options_of  # noqa: E402

GPU = {**SMALL, "gpu": 1}  # no node has this resource, so the pods wait


class Batch(World):
    resource, label = "jobs.batch", "batch.kubernetes.io/job-name"


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
