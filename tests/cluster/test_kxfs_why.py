# SPDX-License-Identifier: MIT
"""`why` of jobs that a real kubelet does not start or ends, or whose pods a real API server
refuses, and what `events` shows. tests/unit/spec/kinds/test-volcano_why.c has all causes."""

import signal

from harness import wait_for
from mounted import HOLD, app, manifest, quota, role, running, says

NO_RETRY = "There was no retry, because max_retries is 0."


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


# --- events -----------------------------------------------------------------------------------


def test_events(kx, world):
    """`events` lists the events of the job's own objects, one per line, and none of another job's.
    """
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
