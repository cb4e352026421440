# SPDX-License-Identifier: MIT
"""What keeps a job of a real cluster from running, or ended it: one sentence for each cause that
can occur there. Also what `events` and `queues/` show. tests/unit/spec/kinds/test-volcano_why.c has
all causes."""

import signal
import uuid

import api
import pytest
import yaml
from harness import wait_for
from mounted import HOLD, app, manifest, quota, role, running, says

NO_RETRY = "There was no retry, because max_retries is 0."
ROOM = "It starts automatically when capacity becomes available."


def ends(job, world):
    """What the job waited for is available. It starts automatically, and `why` becomes empty."""
    world.release(running(job))
    job.finish()
    assert job.read("why") == ""


# --- causes of a replica -----------------------------------------------------------------------


def test_no_node_fits(kx):
    job = kx.submit(app(HOLD, resource={"cpu": 0.1, "memMB": 64, "gpu": 0, "capabilities": {
        "node.kubernetes.io/instance-type": "no-such-type"}}))
    says(job, r"main-0 fits on no node: 0/\d+ nodes are (un)?available: \d+ node\(s\) didn't match Pod's node "
         r"affinity/selector\.", "Unschedulable")


def test_missing_image(kx):
    job = kx.submit(app(HOLD, image="localhost:1/no/such:image", num_replicas=2))
    says(job, "main-0 can't start: its image localhost:1/no/such:image can't be pulled: connection "
              "refused. Check the image's name and tag, and that the cluster's nodes may pull it. "
              "It is the first of 2 replicas that wait for the same reason.")


def test_missing_secret(kx, world):
    job = kx.submit(manifest(container={"env": [{"name": "KEY", "valueFrom": {
        "secretKeyRef": {"name": "nope", "key": "key"}}}]}))
    says(job, 'main-0 can\'t start: secret "nope" not found. The replica starts automatically when this problem is fixed.',
         "CreateContainerConfigError")
    world.kubectl("create", "secret", "generic", "nope", "--from-literal=key=1")
    ends(job, world)


def test_missing_configmap(kx, world):
    job = kx.submit(manifest(volumes=[{"name": "settings", "configMap": {"name": "nope"}}], container={
        "volumeMounts": [{"name": "settings", "mountPath": "/settings"}]}))
    says(job, 'main-0 can\'t start: its volume settings can\'t be mounted: configmap "nope" not found. The replica starts '
         "automatically when this problem is fixed.", "FailedMount")
    world.kubectl("create", "configmap", "nope")
    ends(job, world)


def test_missing_claim(kx, world):
    job = kx.submit(app(HOLD, mounts=[{"type": "volume", "src": "nope", "dst_path": "/data"}]))
    says(job, f"main-0 can't start: there is no persistent volume claim nope "
              f"in namespace {world.namespace}. It starts automatically when the claim exists.", "Unschedulable")


def test_missing_program(kx):
    job = kx.submit(app(roles=[role("", entrypoint="/no/such/program", args=[])]))
    job.finish("FAILED")
    says(job, 'main-0 could not be started: exec: "/no/such/program": stat /no/such/program: no such file or '
         "directory. Check the entrypoint of role main: it must be a program in PATH or the path of an executable "
         f"file. {NO_RETRY}", "StartError")


def test_exit_code(kx, world):
    job = kx.submit(app(HOLD, num_replicas=2))
    running(job, "main-0")
    world.release(running(job, "main-1"), 127)
    world.release(job.replica()["pod"])
    job.finish("FAILED")
    says(job, "main-1 ended with exit code 127 (in a shell: a command was not found). "
         f"{NO_RETRY} Its output is in main-1/log. Its last output:\n    begin\n    end", "Error")


def test_memory(kx):
    # The OOM event and the container's exit are reported in parallel. The sleep ensures that the
    # event is not too late.
    job = kx.submit(app("dd if=/dev/zero of=/dev/null bs=256M count=1; code=$?; sleep 2; exit $code"))
    job.finish("FAILED")
    says(job, "main-0 was killed because it used more memory than its limit of 61 MiB. Role main must request more memory, or "
         f"use less. {NO_RETRY} Its output is in main-0/log. Its last output:\n    Killed", "OOMKilled")


def test_time_limit(kx, world):
    """The cluster ends a job that runs too long while no kxfs is running. The next kxfs explains
    that."""
    job = kx.submit(app(HOLD, args={"time_limit": "5s"}))
    assert job.status()["time_limit"] == 5
    kx.end(signal.SIGKILL)
    wait_for(lambda: [pod["status"].get("phase") for pod in world.pods(job.id)] == ["Failed"], what="the end of the pod")
    kx.start()
    job.finish("FAILED")
    says(job, rf"main-0 ran longer than its time limit of 5s\. {NO_RETRY}[\s\S]*", "DeadlineExceeded")
    assert job.status()["deadline"] is None


# --- pods that can't be created ----------------------------------------------------------------


def test_quota(kx, world):
    """One pod of a gang of two exists, but does not start. The refusal of the other pod explains
    more than the gang's message."""
    quota(world, "pods")
    job = kx.submit(manifest(replicas=2, volumes=[{"name": "none", "secret": {"secretName": "none"}}]))
    says(job, "The job waits: its pods can't be created: quota few is exhausted (requested: "
              "pods=1, used: pods=1, limited: pods=1). The job continues automatically if quota "
              "becomes available soon; Volcano gives up after some minutes.",
         "QuotaExceeded")
    assert job.status()["message"].startswith("its pods can't be created: quota few is exhausted")


def test_service_account(kx, world):
    job = kx.submit(app(HOLD, args={"service_account": "nope"}))
    says(job, "The job waits: its pods can't be created: there is no service account nope in namespace "
         f"{world.namespace}. Create this service account, or submit the job with another service_account.", "NoServiceAccount")


def test_priority_class(kx):
    job = kx.submit(app(HOLD, args={"priority_class": "nope"}))
    says(job, "The job waits: its pods can't be created: there is no priority class nope. Create "
              "this priority class, or submit the job with another "
              "priority_class.", "NoPriorityClass")


# --- capacity ----------------------------------------------------------------------------------


def test_cluster_full(kx):
    job = kx.submit(app(HOLD, resource={"cpu": 5000, "memMB": 64, "gpu": 0}, num_replicas=2))
    says(job, f"The job waits: the cluster has no capacity for it now: it needs 9999.8 cpu. {ROOM}",
         "ClusterFull")


@pytest.fixture
def queue(world):
    """Yield the name of a queue with 0.3 CPUs. The test may send a Command about it."""
    name, client = f"kxfs-{uuid.uuid4().hex[:8]}", world.cluster.client
    client.post(api.path_of("queues"), {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": True, "capability": {"cpu": "300m"}}})
    wait_for(lambda: client.get(api.path_of("queues", None, name)).get("status", {}).get("state") == "Open",
             what="the queue to be open")
    yield name
    client.delete(world.path("jobs"))
    client.delete(api.path_of("queues", None, name))


def test_queue(mount, world, queue):
    """`why` and `queues/` of a queue that is full, too small, or closed."""
    kx = mount(options=f"queue={queue}")
    resource = {"cpu": 0.3, "memMB": 64, "gpu": 0}  # a tenth less is requested
    first = kx.submit(app(HOLD, resource=resource), "first.yaml")
    running(first)
    second = kx.submit(app(HOLD, resource=resource), "second.yaml")
    says(second, f"The job waits: queue {queue} has no capacity for it now: it "
                 f"needs 0.2 cpu, and the queue has 0.1 of its 0.3 free. "
                 f"{ROOM}", "QueueFull")
    large = kx.submit(app(HOLD, resource={**resource, "cpu": 0.5}), "large.yaml")
    says(large, f"The job waits: queue {queue} has no capacity for it now: it "
                f"needs 0.4 cpu, and the queue's limit is 0.3. "
                f"Submit the job to another queue, or request less.", "QueueTooSmall")
    assert {"default", queue} <= set(kx.ls("queues"))
    status = yaml.safe_load(kx.read("queues", queue, "status"))
    assert (status["state"], status["capability"]) == ("Open", {"cpu": "300m"})
    wait_for(lambda: [yaml.safe_load(kx.read("queues", queue, "status"))[key] for key in ("running", "pending")]
             == [1, 2], what="what runs and waits in the queue")
    large.cancel()
    world.release(first.replica()["pod"])
    running(second)
    wait_for(lambda: second.read("why") == "", what="nothing to be said")
    third = kx.submit(app(HOLD, resource=resource), "third.yaml")
    says(third, r"The job waits: queue \S+ has no capacity for it now: .*", "QueueFull")
    world.cluster.client.post(world.path("commands"), {
        "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"generateName": "close-"},
        "action": "CloseQueue", "target": {
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": queue,
            "uid": world.cluster.client.get(api.path_of("queues", None, queue))["metadata"]["uid"]}})
    says(third, f"The job waits: queue {queue} is closed. Submit the job to another "
                f"queue, or ask the cluster's administrator to open this queue.",
         "QueueClosed")


def test_events(kx, world):
    """`events` lists the events of the job's own objects, one per line, and none of another job's."""
    other = kx.submit(app(HOLD, name="other"), "other.yaml")
    job = kx.submit(app(HOLD))
    running(other)
    pod = running(job)

    def told():
        lines = [line.split("\t") for line in job.read("events").splitlines()]
        return {fields[3]: fields for fields in lines if fields[1] == f"Pod/{pod}"}

    wait_for(lambda: {"Scheduled", "Pulled", "Created", "Started"} <= set(told()), what="the pod's events")
    assert told()["Started"][2] == "Normal" and told()["Started"][4] == "1"
    assert other.replica()["pod"] not in job.read("events")
    wait_for(lambda: job.read("why") == "", what="nothing to be said")
