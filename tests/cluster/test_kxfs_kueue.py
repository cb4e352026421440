# SPDX-License-Identifier: MIT
"""Jobs in a Kueue queue, on a separate cluster, with the rights of contrib/rbac.yaml: what `why`,
`status` and `queues/` show while the jobs wait, run, are evicted and continue."""

import sys

import api
import pytest
import yaml
from cluster import HERE
from harness import wait_for
from mounted import HOLD, app, running, says
from process import Part
from test_kxfs_appwrapper import Wrapped, Wrapping, ctl, runs

DEFINITION = HERE.parent / "replay/data/crds/kueue.yaml"
# 0.1 of a pod's CPU is reserved, so each requests 0.1.
CPU = {"cpu": 0.2, "memMB": 64, "gpu": 0}
OPENED = "Kueue admits it when the queue is opened again.\n"


class Queueing(Wrapping):
    """AppWrappers v1beta2 and Kueue instead of Volcano's resources."""

    def apply_definitions(self):
        super().apply_definitions()
        self.kubectl("apply", "--server-side", f"--filename={DEFINITION}")
        for resource in ("workloads", "localqueues", "clusterqueues"):
            wait_for(lambda r=resource: self.is_served(api.path_of(r)), what=f"{resource} to be served")

    def start_volcano(self):
        port = self.ports["webhook"]
        self.ca.make("volcano", "volcano", hosts=("localhost",))
        self.parts["volcano"] = Part("kueue", self.base, [
            sys.executable, HERE / "controllers/kueue.py", self.kubectl_path, self.kubeconfig("volcano"), port,
            self.ca.dir]).start()
        self.serve_behind("visibility.kueue.x-k8s.io", "v1beta2", "kueue-visibility", port)


class Queued(Wrapped):
    """A namespace with a LocalQueue `team` of its own ClusterQueue, which has 0.2 CPUs."""

    def make_queues(self, name="team", cluster_queue=None):
        cluster_queue = cluster_queue or self.namespace
        self.cluster.apply(
            {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": cluster_queue},
             "spec": {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                 {"name": "default-flavor", "resources": [{"name": "cpu", "nominalQuota": "200m"}]}]}]}})
        self.make_local_queue(name, cluster_queue)

    def make_local_queue(self, name="team", cluster_queue=None):
        self.cluster.apply({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": name},
                            "spec": {"clusterQueue": cluster_queue or self.namespace}}, namespace=self.namespace)

    def stop(self, policy):
        self.cluster.client.merge(api.path_of("clusterqueues", None, self.namespace), {"spec": {"stopPolicy": policy}})

    def workload(self, job):
        return next(w for w in self.cluster.client.items(self.path("workloads"))
                    if w["metadata"]["ownerReferences"][0]["name"] == job)


@pytest.fixture(scope="module")
def cluster():
    with Queueing() as own:
        yield own


@pytest.fixture
def world(cluster, namespace):
    yield Queued(cluster, namespace)
    cluster.client.delete(api.path_of("appwrappers", namespace))
    for name in (namespace, f"{namespace}-other"):
        cluster.client.delete(api.path_of("clusterqueues", None, name))


@pytest.fixture
def kx(make_kx, world, limited):
    return make_kx("queue=team", source=f"appwrapper:{world.namespace}", env={"KUBECONFIG": str(limited)})


def test_line(kx, world):
    """One job runs, and two wait in order. When it ends, the next one is admitted."""
    world.make_queues()
    first = kx.submit(app(HOLD, resource=CPU, num_replicas=2))
    running(first, "main-1")
    second = kx.submit(app(HOLD, resource=CPU))
    says(second, f"The job waits: it has no quota in queue team (cluster queue "
                 f"{world.namespace}). Kueue: \"couldn't assign flavors to pod "
                 f"set {second.id}-0: insufficient unused quota for cpu in flavor "
                 f"default-flavor, 100m more needed\". Its position in the queue "
                 f"is 1.")
    assert (second.status()["state"], second.status()["reason"], second.status()["queue"]) == (
        "PENDING", "Queued", "team")
    third = kx.submit(app(HOLD, resource=CPU))
    for place, job in enumerate((second, third), 1):
        wait_for(lambda p=place, j=job: j.status()["queue_position"] == p, what=f"place {place}", step=0.5)

    def queue():
        return yaml.safe_load(kx.read("queues", "team", "status"))

    # The queue, the jobs and their Workloads come from separate watches.
    wait_for(lambda: (queue()["pending"], queue()["running"], queue()["workloads"]) == (
        2, 1, {"pending": 2, "reserving": 1, "admitted": 1}), what="what the queue has")
    queue = queue()
    assert (queue["state"], queue["cluster_queue"]) == ("Open", world.namespace)
    assert queue["flavors"] == [{"flavor": "default-flavor", "resource": "cpu", "used": "200m", "reserved": "200m",
                                 "nominal": None, "borrowing_limit": None, "borrowed": None}], "ClusterQueues are not ours to see"
    world.release_all(first.id)
    first.finish()
    for job in (second, third):
        running(job)
        wait_for(lambda j=job: j.status()["queue_position"] is None, what="it to have left the line")
        world.release_all(job.id)
        job.finish()
    refused = yaml.safe_load(kx.read(".kxfs", "info"))["refused"]
    assert [r["resource"] for r in refused] == ["clusterqueues.kueue.x-k8s.io"]


def test_ctl(kx, world):
    """A waiting job moves to the head of the queue by its priority class, or to another queue with
    capacity."""
    world.make_queues()
    first = kx.submit(app(HOLD, resource=CPU, num_replicas=2))
    running(first, "main-1")
    second, third = kx.submit(app(HOLD, resource=CPU)), kx.submit(app(HOLD, resource=CPU))

    def line(*jobs):
        for place, job in enumerate(jobs, 1):
            wait_for(lambda p=place, j=job: j.status()["queue_position"] == p, what=f"place {place}", step=0.5)

    line(second, third)
    world.cluster.apply({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "high"},
                         "value": 1000})
    assert "priority CLASS" in third.read("ctl") and ctl(third, "priority high") is None
    line(third, second)
    assert (third.status()["priority_class"], third.status()["priority"]) == ("high", 1000)
    world.make_queues("other", f"{world.namespace}-other")
    assert ctl(second, "queue other") is None
    pod = running(second)
    assert (second.status()["queue"], second.status()["cluster_queue"]) == ("other", f"{world.namespace}-other")
    assert third.state() == "PENDING" and "queue NAME" not in second.read("ctl")
    world.release(pod)
    second.finish()
    world.release_all(first.id)
    first.finish()
    world.release(running(third))
    third.finish()


def test_never(kx, world):
    """Jobs that can't run: one requests too much, and one is in a missing queue."""
    job = kx.submit(app(HOLD, resource=CPU))
    says(job, "The job waits: it has no quota in queue team. Kueue: \"LocalQueue team doesn't exist\".")
    world.make_local_queue()
    says(job, f"The job waits: it has no quota in queue team (cluster queue {world.namespace}). Kueue: \"ClusterQueue "
              f"{world.namespace} doesn't exist\".")
    world.make_queues()
    world.release(running(job))
    job.finish()
    large = kx.submit(app(HOLD, resource=CPU, num_replicas=3))
    wait_for(lambda: "requests (200m) + current podset request (100m) > maximum capacity (200m)\"" in large.read("why"), what="Kueue's words")
    assert large.read("why").startswith(f"The job waits: it has no quota in queue team (cluster queue {world.namespace}). Kueue: ")
    large.cancel()


def test_put_out(kx, world):
    """A job is evicted by draining, then by deactivation. Each time it continues as another
    attempt, and its output remains."""
    world.make_queues()
    job = kx.submit(app(HOLD, resource=CPU))
    runs(job)
    job.until_logged("begin")
    world.stop("HoldAndDrain")
    inactive = f"The job waits: queue team (cluster queue {world.namespace}) is inactive. Kueue: \""
    wait_for(lambda: job.read("why").startswith(inactive) and job.state() == "PENDING", what=lambda: job.read("why"))
    assert "its cluster queue was drained at" in job.read("why") and job.read("why").endswith(OPENED)
    world.stop("None")
    wait_for(lambda: job.replica()["attempt"] == 1, what="another attempt")
    runs(job)
    assert ctl(job, "suspend") is None
    wait_for(lambda: job.read("state") == "CANCELLED\n", what="it to be suspended")
    assert world.workload(job.id)["spec"]["active"] is False
    wait_for(lambda: job.status()["reason"] == "Deactivated", what="the Workload to be seen")
    assert job.read("why").startswith("The job is suspended: its Workload appwrapper-")
    assert ctl(job, "resume") is None
    wait_for(lambda: job.replica()["attempt"] == 2, what="a third attempt")
    world.release(runs(job))
    job.finish()
    assert job.read("main-0", "log.0").startswith("begin\n") and job.read("main-0", "log") == "begin\nend\n"
