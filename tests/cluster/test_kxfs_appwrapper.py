# SPDX-License-Identifier: MIT
"""Mounts of AppWrappers v1beta2, on a separate cluster. Their definition has the same name as
MCAD's, so no cluster has both. With KXFS_CLUSTER_NAMESPACE, the tests use the cluster of KUBECONFIG
and its controller, if it serves AppWrappers v1beta2."""

import errno
import os
import re
import sys

import api
import pytest
import yaml
from cluster import HERE, Cluster
from conftest import Given
from harness import wait_for
from mounted import HOLD, World, app, ended, running
from process import Part

sys.path.append(str(HERE.parent / "golden"))

from golden import cases_of  # noqa: E402

DEFINITION = HERE.parent / "replay/data/crds/appwrapper.yaml"
LABEL = "workload.codeflare.dev/appwrapper"
QUEUE = "kueue.x-k8s.io/queue-name"


class Wrapping(Cluster):
    """AppWrappers v1beta2 instead of Volcano's resources."""

    def apply_definitions(self):
        self.kubectl("apply", "--server-side", f"--filename={DEFINITION}")
        wait_for(lambda: self.is_served(api.path_of("appwrappers")), what="AppWrappers to be served")

    def start_volcano(self):
        self.parts["volcano"] = Part("appwrapper", self.base, [
            sys.executable, HERE / "controllers/appwrapper.py", self.kubectl_path,
            self.kubeconfig("volcano")]).start()


def ctl(job, word):
    """Write WORD to ctl. Return the errno, or None for success."""
    fd = os.open(job / "ctl", os.O_WRONLY)
    try:
        os.write(fd, f"{word}\n".encode())
    except OSError as e:
        return e.errno
    finally:
        os.close(fd)
    return None


def runs(job):
    """Wait until the job runs according to its controller too, which may be later than its pods."""
    pod = running(job)
    wait_for(lambda: job.status()["phase"] == "Running", what="the controller's word")
    return pod


class Wrapped(World):
    def jobs(self):
        return {job["metadata"]["name"]: job for job in self.cluster.client.items(self.path("appwrappers"))}

    def pods(self, job):
        return [pod for pod in self.cluster.client.items(self.path("pods"))
                if (pod["metadata"].get("labels") or {}).get(LABEL) == job
                and "deletionTimestamp" not in pod["metadata"]]


@pytest.fixture(scope="module")
def cluster():
    if "KXFS_CLUSTER_NAMESPACE" not in os.environ:
        with Wrapping() as own:
            yield own
        return
    given = Given()
    try:
        given.client.get(api.path_of("appwrappers", os.environ["KXFS_CLUSTER_NAMESPACE"]))
    except api.Refused as e:
        pytest.skip(f"no AppWrappers v1beta2: {e}")
    yield given


@pytest.fixture
def world(cluster, namespace):
    yield Wrapped(cluster, namespace)
    cluster.client.delete(api.path_of("appwrappers", namespace))


@pytest.fixture
def kx(make_kx, cluster, world):
    def make(options="", source="appwrapper"):
        return make_kx(options, source=f"{source}:{world.namespace}",
                       env={"KUBECONFIG": str(cluster.kubeconfig("token"))})

    return make


def test_to_the_end(kx, world):
    """A job is submitted, watched, followed and ended. The wrapped objects are those that TorchX
    would create."""
    kx = kx()
    job = kx.submit(app(HOLD, num_replicas=2))
    made = world.jobs()[job.id]
    assert [c["template"]["kind"] for c in made["spec"]["components"]] == ["Pod", "Pod", "Service"]
    for replica in ("main-0", "main-1"):
        running(job, replica)
    assert job.until("RUNNING") == "RUNNING"
    wait_for(lambda: job.status()["phase"] == "Running", what="the controller's word")
    status = yaml.safe_load(job.read("status"))
    assert status["phase"] == "Running" and status["roles"][0]["running"] == 2
    world.release_all(job.id)
    ended(job)
    for name in ("main-0", "main-1"):
        replica = job.replica(name)
        assert (replica["state"], replica["exit_code"], replica["attempt"]) == ("SUCCEEDED", 0, 0)
        assert job.read(name, "follow") == "begin\nend\n"
    assert job.read("why") == ""
    wait_for(lambda: job.status()["phase"] == "Succeeded", what="the controller's word")
    assert job.status()["created"] <= job.status()["started"] <= job.status()["finished"]


def test_failure(kx, world):
    """The controller deletes the pods of a failed job. Their status and output remain."""
    job = kx().submit(app(HOLD, num_replicas=2))
    running(job, "main-0")
    pod = running(job, "main-1")
    for name in ("main-0", "main-1"):
        job.until_logged("begin", name)
    world.release(pod, 3)
    ended(job, "FAILED")
    wait_for(lambda: not world.pods(job.id), what="the pods to be deleted")
    assert (job.replica("main-1")["state"], job.replica("main-1")["exit_code"]) == ("FAILED", 3)
    wait_for(lambda: job.replica("main-0")["state"] == "CANCELLED", what="the other to be stopped")
    assert job.read("main-1", "follow") == "begin\nend\n" and job.read("main-0", "log") == "begin\n"
    assert "main-1 ended with exit code 3" in job.read("why")
    assert (job.status()["retries"], job.status()["max_retries"]) == (0, 0)


def test_retry(kx, world):
    """Each attempt has its own pods with the same names, and its own log."""
    job = kx().submit(app(HOLD, max_retries=1))
    pod = running(job)
    job.until_logged("begin")  # the controller deletes the pod when it has failed
    world.release(pod, 7)
    wait_for(lambda: job.status()["retries"] == 1, what="the job to be reset")
    wait_for(lambda: job.replica()["attempt"] == 1, what="the second try")
    world.release(running(job), 0)
    ended(job)
    assert (job.replica()["exit_code"], job.replica()["attempt"]) == (0, 1)
    assert job.read("main-0", "log.0") == job.read("main-0", "log") == "begin\nend\n"
    assert job.status()["max_retries"] == 1


def test_cancel(kx, world):
    """Cancelling a job also deletes its wrapped objects."""
    kx = kx()
    job = kx.submit(app(HOLD))
    running(job)
    job.cancel()
    wait_for(lambda: not world.jobs() and not world.pods(job.id), what="all of it to go")
    assert kx.read("history", job.id, "state") == "CANCELLED\n"
    assert not [s for s in world.cluster.client.items(world.path("services"))
                if s["metadata"]["name"] == job.id]


def test_suspended_by_others(kx, world):
    """Others may set spec.suspend. The pods are stopped, and resuming starts another attempt."""
    job = kx().submit(app(HOLD))
    runs(job)
    job.until_logged("begin")
    path = world.path("appwrappers", job.id)
    world.cluster.client.merge(path, {"spec": {"suspend": True}})
    wait_for(lambda: job.status()["phase"] == "Suspended", what="it to be suspended")
    assert job.read("state") == "CANCELLED\n" and "suspended" in job.read("why")
    assert not world.pods(job.id)
    world.cluster.client.merge(path, {"spec": {"suspend": False}})
    wait_for(lambda: job.replica()["attempt"] == 1, what="another pod")
    world.release(runs(job))
    job.finish()
    assert job.read("main-0", "log.0").startswith("begin\n") and job.read("main-0", "log") == "begin\nend\n"


def test_ctl(kx, world):
    """ctl offers suspend and resume, and nothing else. Both work."""
    job = kx().submit(app(HOLD))
    runs(job)
    job.until_logged("begin")
    assert job.read("ctl") == "suspend\n"
    assert ctl(job, "suspend") is None
    wait_for(lambda: job.status()["phase"] == "Suspended", what="it to be suspended")
    assert job.read("state") == "CANCELLED\n" and job.read("ctl") == "resume\n"
    assert job.read("main-0", "log") == "begin\n"
    assert ctl(job, "suspend") == errno.EINVAL
    assert ctl(job, "terminate") == errno.EOPNOTSUPP
    assert ctl(job, "resume") is None
    wait_for(lambda: job.replica()["attempt"] == 1, what="another pod")
    world.release(runs(job))
    job.finish()
    wait_for(lambda: job.read("ctl") == "", what="nothing to be left to do")


def test_queue(kx, world):
    """A job in a Kueue queue, without Kueue. A suspended job waits, and `why` explains that."""
    mount = kx("queue=research")
    job = mount.submit(app(HOLD))
    assert world.jobs()[job.id]["metadata"]["labels"][QUEUE] == "research"
    runs(job)  # nobody has suspended it
    assert job.status()["queue"] == "research"
    world.cluster.client.merge(world.path("appwrappers", job.id), {"spec": {"suspend": True}})
    wait_for(lambda: job.status()["phase"] == "Suspended", what="it to be suspended")
    assert job.read("state") == "PENDING\n"
    assert ctl(job, "suspend") == errno.EOPNOTSUPP, "it would be the Workload's"
    assert job.read("why").startswith("The job waits")


def test_create_failed(kx, world):
    """The wrapped objects are checked only when they are created. An error then makes the job fail."""
    job = kx().submit(app(HOLD, args={"service_account": "nobody-there"}))
    job.finish("FAILED")
    assert "nobody-there" in job.read("why") and job.status()["reason"] == "CreateFailed"


def test_again(kx, world):
    """The manifest of a job, submitted again, gets a name of its own."""
    mount = kx()
    job = mount.submit(app(HOLD))
    world.release(running(job))
    job.finish()
    job.cancel()
    wait_for(lambda: not world.jobs(), what="it to go")
    again = mount.submit(mount.read("history", job.id, "manifest.yaml"), name="again.yaml")
    world.release(running(again))
    again.finish()


def test_accepted(world):
    """The real definition accepts every golden case unchanged, and the server accepts the wrapped
    objects."""
    refused = set()
    for name, made in cases_of("appwrapper").items():
        text = re.sub(r"^( +namespace:) .*", rf"\1 {world.namespace}", made, flags=re.M)
        job = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        items = [("appwrappers", job)]
        for component in job["spec"]["components"]:
            template = component["template"]
            # The objects that these fields name must exist when a pod is created, and they don't.
            for field in ("serviceAccountName", "priorityClassName"):
                template["spec"].pop(field, None)
            items.extend((resource, template) for kind, resource in (("Pod", "pods"), ("Service", "services"))
                         if template["kind"] == kind)
        for resource, item in items:
            try:
                world.cluster.client.post(f"{world.path(resource)}?dryRun=All&fieldValidation=Strict", item)
            except api.Refused as e:
                refused.add((name, e.message.rpartition(": ")[2]))
    assert refused == {("207-new-overlay-flat-spec", 'unknown field "spec.noSuchField"')}, "an overlay's own"
