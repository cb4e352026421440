# SPDX-License-Identifier: MIT
"""The simulated controllers handle jobs as a real Volcano does. The tests repeat recorded
scenarios, and the sequence of states of the job, its pods and its PodGroups must be the same."""

import contextlib
import copy
import os
import pathlib
import re
import subprocess

import api
import pytest
from mounted import HOLD, World
from process import wait_for
from story import Watcher, recorded

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPU = "50m"  # of each pod: so little that all tests can run at the same time
# Exits with 0 when the test says so. It ignores SIGTERM, because it has no trap and is the first
# process of its container.
STAYS = "while [ ! -s /code ]; do sleep 0.1; done"


@pytest.fixture
def watcher(cluster, namespace):
    watcher = Watcher(cluster.client, namespace)
    yield watcher
    watcher.done.set()


@pytest.fixture
def play(cluster, namespace, watcher, load_job):
    """Return play(scenario, script=None), which submits the scenario's job and returns its name.
    Each replica runs SCRIPT if given."""
    def submit(scenario, script=None):
        job = load_job(scenario)
        for task in job["spec"]["tasks"]:
            container = task["template"]["spec"]["containers"][0]
            resources = container["resources"]
            resources["requests"]["cpu"] = resources["limits"]["cpu"] = CPU
            container["command"] = ["sh", "-c", script] if script else container["command"]
        cluster.client.post(api.path_of("jobs", namespace), job)
        return job["metadata"]["name"]

    return submit


def command(cluster, namespace, name, action):
    job = cluster.client.get(api.path_of("jobs", namespace, name))
    cluster.client.post(api.path_of("commands", namespace), {
        "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "action": action,
        "metadata": {"generateName": "test-", "namespace": namespace},
        "target": {"apiVersion": job["apiVersion"], "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}})


def until(tell, wanted, what):
    """Wait until what TELL returns is WANTED."""
    try:
        wait_for(lambda: tell() == wanted, what)
    except AssertionError as e:
        raise AssertionError(f"{what}: {tell()}, not {wanted}") from e


def let_end(world, code):
    """Let pods of HOLD exit with CODE once all were seen running. Otherwise a pod that runs only a
    second or two might start and exit before the kubelet reports it."""
    pods = world.cluster.client.items(world.path("pods"))
    groups = world.cluster.client.items(world.path("podgroups"))
    (job,) = world.jobs().values()
    if (job.get("status", {}).get("state", {}).get("phase") != "Running"
            or any(group.get("status", {}).get("phase") != "Running" for group in groups)):
        return
    for pod in pods:
        name = pod["metadata"]["name"]
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]:
            with contextlib.suppress(api.Refused):  # the pod is gone
                ident = world.container(name)
                if ident:
                    world.write_code(name, None, ident, code)


def compare(watcher, scenario, tell=None):
    """Compare the watcher's story with the recording. TELL replaces watcher.jobs if the test must
    act meanwhile."""
    old = recorded(scenario)
    until(tell or watcher.jobs, old.jobs(), "the job's phases")
    until(watcher.pods, old.pods(), "the pods' phases")
    until(watcher.groups, old.groups(), "the PodGroups' phases")
    return old


@pytest.mark.parametrize("scenario", ["success", "fail", "retry_replica", "retry_application"])
def test_to_the_end(cluster, namespace, watcher, play, scenario):
    """Finished jobs. What remains of their status, without the counts, is compared too."""
    play(scenario, script=HOLD)

    def tell():
        let_end(World(cluster, namespace), 0 if scenario == "success" else 3)
        return watcher.jobs()

    old = compare(watcher, scenario, tell)
    until(watcher.last_status, old.last_status(), "the status at the end")


def test_delete(cluster, namespace, watcher, play, wait_job):
    name = play("delete_running")
    wait_job(namespace, name, "Running")
    wait_for(lambda: watcher.groups() == [["Inqueue", "Running"]], "the PodGroup to run")
    cluster.client.delete(api.path_of("jobs", namespace, name), {"propagationPolicy": "Background"})
    compare(watcher, "delete_running")


def test_suspend_and_resume(cluster, namespace, watcher, play, wait_job):
    """The job is resumed while it is still being aborted, as in the recording. That costs a retry.
    """
    world = World(cluster, namespace)
    name = play("suspend_resume", script=STAYS)
    wait_job(namespace, name, "Running")
    (pod,) = world.pods(name)
    command(cluster, namespace, name, "AbortJob")
    wait_job(namespace, name, "Aborting")
    command(cluster, namespace, name, "ResumeJob")
    wait_job(namespace, name, "Restarting")
    world.release(pod["metadata"]["name"])

    def tell():
        let_end(world, 0)
        return watcher.jobs()

    old = recorded("suspend_resume")
    until(tell, old.jobs(), "the job's phases")
    until(watcher.pods, old.pods(), "the pods' phases")
    until(lambda: {**watcher.last_status(), "version": 0}, {**old.last_status(), "version": 0},
          "the status at the end")
    assert not cluster.client.items(api.path_of("commands", namespace))


def test_image_pull_failure(cluster, namespace, watcher, play):
    """The job waits although its gang exists. The container shows the reason."""
    name = play("image_pull_failure")
    old = recorded("image_pull_failure")
    wait_for(lambda: watcher.groups() == [["Inqueue", "Running"]], "the PodGroup to run")

    def reason():
        pods = cluster.client.items(api.path_of("pods", namespace))
        statuses = pods[0]["status"].get("containerStatuses", []) if pods else []
        return statuses and statuses[0]["state"].get("waiting", {}).get("reason")

    wait_for(lambda: reason() in ("ErrImagePull", "ImagePullBackOff"), "the image to be missed")
    cluster.client.delete(api.path_of("jobs", namespace, name), {"propagationPolicy": "Background"})
    until(watcher.jobs, old.jobs(), "the job's phases")
    until(watcher.groups, old.groups(), "the PodGroups' phases")


def test_pod_like_the_recorded(cluster, namespace, watcher, play, load_job):
    """Names, labels, annotations, owner, environment and volumes of a pod are those of the real
    Volcano."""
    name = play("success")
    wait_for(lambda: len(watcher.pods()) == 2, "the pods")

    def shape(events, name, namespace):
        pod = next(item for _, item in events if item["metadata"]["name"] == f"{name}-trainer-0-0")
        meta, spec = copy.deepcopy(pod["metadata"]), pod["spec"]
        uid = meta["ownerReferences"][0].pop("uid")
        meta["annotations"]["scheduling.k8s.io/group-name"] = meta["annotations"][
            "scheduling.k8s.io/group-name"].replace(uid, "UID")
        return {
            "labels": {k: v.replace(namespace, "NS") for k, v in meta["labels"].items()},
            "annotations": meta["annotations"], "owner": meta["ownerReferences"],
            "env": spec["containers"][0]["env"], "hostname": spec["hostname"],
            "subdomain": spec["subdomain"], "scheduler": spec["schedulerName"],
            "volumes": [volume["name"] for volume in spec["volumes"] if "kube-api" not in volume["name"]],
            "mounts": [mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]],
        }

    old = recorded("success")
    assert (shape(watcher.events["pods"], name, namespace)
            == shape(old.events["pods"], load_job("success")["metadata"]["name"], "rec-success"))


def simple(script, name="simple", replicas=1, task=None, **spec):
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": {
        "queue": "default", "schedulerName": "volcano", "plugins": {"svc": [], "env": []}, **spec,
        "tasks": [{"name": "work", "replicas": replicas, **(task or {}), "template": {"spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [{
                "name": "work", "image": "docker.io/library/busybox:1.35", "command": ["sh", "-c", script],
                "resources": {"requests": {"cpu": "50m"}}}]}}}]}}


def test_several_replicas(cluster, namespace, wait_job):
    """A job without TorchX: the webhook's defaults, the plugins' environment, and logs through the
    server."""
    cluster.client.post(api.path_of("jobs", namespace), simple(
        "echo $VC_TASK_INDEX of $VC_WORK_NUM: $VC_WORK_HOSTS; cat /etc/volcano/work.host; echo", replicas=2))
    job = wait_job(namespace, "simple", "Completed")
    assert (job["spec"]["minAvailable"], job["spec"]["maxRetry"]) == (2, 3)
    for index in (0, 1):
        log = cluster.client.send("GET", api.path_of("pods", namespace, f"simple-work-{index}", "log"))
        assert log.splitlines() == [
            f"{index} of 2: simple-work-0.simple,simple-work-1.simple", "simple-work-0.simple",
            "simple-work-1.simple"]


def test_examples(cluster, namespace, tmp_path, wait_job):
    """kubectl creates the manifest that kxfs makes of an example, and the job runs to its end."""
    text = (ROOT / "contrib/examples/hello.yaml").read_text()
    example = tmp_path / "hello.yaml"
    example.write_text(re.sub(r"image: busybox\b", "image: docker.io/library/busybox:1.35", text))
    program = os.environ.get("KXFS_BINARY", ROOT / "build/fs/kxfs")
    manifest = subprocess.run([program, f"--dry-run={example}", "-o", "queue=default",
                               f"volcano:{namespace}"], check=True,
                              capture_output=True, text=True).stdout
    name = cluster.kubectl("create", "-n", namespace, "-o", "jsonpath={.metadata.name}", "-f", "-",
                           input=manifest).stdout
    wait_job(namespace, name, "Completed")
    assert cluster.kubectl("logs", "-n", namespace, f"{name}-echo-0-0").stdout == "hello world\n"
