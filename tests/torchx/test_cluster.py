# SPDX-License-Identifier: MIT
"""TorchX's commands with a mount of a cluster, which the replaying API server simulates."""

import json
import signal

import harness
import store as st
from environment import PRELUDE, SH, error_of, ident, job, launched

RUN = ("run", "-s", "kxfs", "--workspace", "", "-cfg")
# A Docker daemon that records its requests. Every image that it builds has the id sha256:f00d.
DOCKER = """
    import pathlib
    class Docker:
        def __init__(self):
            self.done, self.images, self.api = [], self, self
        def list(self, name):
            return []
        def pull(self, image):
            self.done.append(["pull", image])
        def build(self, buildargs, **kwargs):
            self.done.append(["build", buildargs["IMAGE"], pathlib.Path(buildargs["WORKSPACE"].removeprefix("file://")).name])
            return [{"aux": {"ID": "sha256:f00d"}}]
        def get(self, image):
            return self
        def tag(self, repo, tag):
            self.done.append(["tag", repo, tag])
        def push(self, repo, tag, stream, decode):
            self.done.append(["push", repo, tag, [app.app_id for app in runner.list("kxfs")]])
            return []
    docker = Docker()
    runner = get_runner(docker_client=docker)
    """

# A program that handles a signal while it submits.
NO_ANSWER = """
import signal
signal.signal(signal.SIGUSR1, lambda *args: open("interrupted", "w").close())
print(runner.run(sh("true"), "kxfs", {"queue": "default"}))
"""


def launched_objects(server):
    return [obj.tree() for obj in server.store.objects(st.JOBS)[0]]


def test_life_of_a_job(cluster, torchx, server, volcano, environment):
    """Run options, every state on the way, the log, and the result."""
    p = torchx(cluster, *RUN, "queue=default,service_account=robot,priority_class=high", *SH, "echo hello")
    handle = launched(p)
    [obj] = launched_objects(server)
    assert obj["metadata"]["name"] == ident(handle)
    assert obj["spec"]["queue"] == "default" and obj["spec"]["priorityClassName"] == "high"
    pod = obj["spec"]["tasks"][0]["template"]["spec"]
    assert pod["serviceAccountName"] == "robot"
    names = {env["name"]: env.get("value") for env in pod["containers"][0]["env"]}
    assert names["TORCHX_JOB_ID"] == handle
    [pod] = volcano.start(ident(handle))
    job(cluster, handle).until("RUNNING")
    status = torchx(cluster, "status", handle).stdout
    assert "State: RUNNING" in status
    volcano.log(pod).append("hello\n")
    job(cluster, handle).until_logged("hello", "sh-0")
    assert torchx(cluster, "log", handle).stdout == "sh/0 hello\n"
    volcano.finish(pod, 3)
    job(cluster, handle).finish("FAILED")
    status = torchx(cluster, "status", handle).stdout
    assert "State: FAILED" in status and "(exitcode: 3)" in status and "hostname: node-1" in status
    if environment.can_delete:
        torchx(cluster, "delete", handle)
        assert not launched_objects(server)
        assert "FAILED" in torchx(cluster, "status", handle).stdout, "it is in the history"


def test_dist_ddp(cluster, torchx, server):
    """TorchX's component for distributed training."""
    handle = launched(torchx(cluster, *RUN, "queue=default", "dist.ddp", "-j", "2x4", "--script", "train.py"))
    [obj] = launched_objects(server)
    assert obj["metadata"]["name"] == ident(handle) and len(obj["spec"]["tasks"]) == 2
    assert "--nproc_per_node 4" in " ".join(obj["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"])


def test_cancel(cluster, torchx, server, volcano, environment):
    """TorchX 0.7.0 deletes the job. A newer one ends its pods and keeps the job until it is
    deleted."""
    handle = launched(torchx(cluster, *RUN, "queue=default", *SH, "true"))
    volcano.start(ident(handle))
    job(cluster, handle).until("RUNNING")
    torchx(cluster, "cancel", handle)
    if environment.can_delete:
        [obj] = launched_objects(server)
        assert obj["status"]["state"]["phase"] == "Aborted" and not volcano.pods(ident(handle))
        job(cluster, handle).until("CANCELLED")
        assert "State: CANCELLED" in torchx(cluster, "status", handle).stdout
        torchx(cluster, "delete", handle)
    assert not launched_objects(server) and cluster.ls("jobs") == []


def test_cancel_again(cluster, torchx, server, volcano, environment):
    """Cancelling a job again while its pods end does not delete it."""
    if not environment.can_delete:
        return
    handle = launched(torchx(cluster, *RUN, "queue=default", *SH, "true"))
    volcano.start(ident(handle))
    ran = job(cluster, handle)
    ran.until("RUNNING")
    volcano.patient = []
    for _ in range(2):
        torchx(cluster, "cancel", handle)
        assert ran.status()["pending_command"] == "suspend"
    for retries in (0, 2):  # in the last attempt, Volcano refuses resume
        volcano.set_phase(ident(handle), "Aborting", retryCount=retries)
        harness.wait_for(lambda: ran.status()["phase"] == "Aborting" and ran.status()["retries"] == retries)
        torchx(cluster, "cancel", handle)
        assert len(launched_objects(server)) == 1
    volcano.set_phase(ident(handle), "Restarting")
    harness.wait_for(lambda: ran.status()["phase"] == "Restarting")
    assert "suspend" in error_of(torchx(cluster, "cancel", handle, check=False))
    volcano.set_phase(ident(handle), "Aborted")
    ran.until("CANCELLED")
    torchx(cluster, "cancel", handle)
    assert len(launched_objects(server)) == 1 and cluster.ls("jobs") == [ident(handle)]


def test_list(cluster, torchx, server, volcano):
    """All jobs of the namespace are listed, whoever created them."""
    server.store.add(st.JOBS, {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
                               "metadata": {"name": "theirs", "namespace": "test"},
                               "spec": {"minAvailable": 1, "queue": "default", "tasks": [
                                   {"name": "main", "replicas": 1, "template": {"spec": {"containers": [
                                       {"name": "main", "image": "none"}]}}}]}})
    harness.wait_for(lambda: cluster.ls("jobs") == ["theirs"])
    volcano.start("theirs")
    harness.Job(cluster, "theirs").until("RUNNING")
    listed = torchx(cluster, "list", "-s", "kxfs").stdout
    assert [line.split()[0] for line in listed.splitlines() if "RUNNING" in line] == ["kxfs://torchx/theirs"]
    assert "main[0]:RUNNING" in torchx(cluster, "status", "kxfs://torchx/theirs").stdout
    assert "'name': 'main'" in torchx(cluster, "describe", "kxfs://torchx/theirs").stdout


def test_refusal(cluster, torchx, server):
    """The message of the cluster's webhook is shown, also for a dry run."""
    for dryrun in ([], ["--dryrun"]):
        p = torchx(cluster, *RUN[:3], *dryrun, *RUN[3:], "queue=nosuch", *SH, "true", check=False)
        assert 'no queue "nosuch"' in error_of(p)
    assert not launched_objects(server) and cluster.ls("submit") == cluster.ls("dryrun") == []


def test_dryrun(cluster, torchx, server):
    """A dry run shows the manifest, with a placeholder for the end of the name, after a check by the
    server. Nothing is launched."""
    out = torchx(cluster, "run", "--dryrun", *RUN[1:], "queue=default", *SH, "echo hello").stdout
    request = out[out.index("=== SCHEDULER REQUEST ==="):]
    assert "kind: Job" in request and "apiVersion: batch.volcano.sh/v1alpha1" in request and "-SUFFIX\n" in request
    assert not launched_objects(server) and cluster.ls("dryrun") == []


def test_overlays(cluster, api, server, environment):
    """A tuple replaces a list instead of being appended. A file is read here. The AppDef's own
    overlays are not for kxfs."""
    def volumes(overlay):
        handle = api(cluster, f"""
            import json
            open("overlay.yaml", "w").write(json.dumps({{"spec": {{"nodeSelector": {{"gpu": "a100"}}}}}}))
            role = Role("main", image="busybox", entrypoint="sh", metadata={{"kubernetes": {overlay}}})
            answer(runner.run(AppDef("all", [role], metadata={{"kubernetes": {{"VCJob": {{}}}}}}), "kxfs", {{"queue": "default"}}))
            """)
        [obj] = [obj for obj in launched_objects(server) if obj["metadata"]["name"] == ident(handle)]
        spec = obj["spec"]["tasks"][0]["template"]["spec"]
        return sorted(volume["name"] for volume in spec["volumes"]), spec["nodeSelector"]

    mine = '{"name": "mine", "emptyDir": {}}'
    assert volumes(f'{{"spec": {{"volumes": [{mine}]}}}}') == (["dshm", "mine"], {})
    assert volumes(f'{{"spec": {{"volumes": ({mine},)}}}}')[0] == ["mine"]
    if environment.version != "0.7.0":
        assert volumes('f"file://{os.getcwd()}/overlay.yaml"') == (["dshm"], {"gpu": "a100"})


def test_interrupted(cluster, environment, server, work):
    """Ctrl-C while the request is under way: the message names where the result will be, and the
    job exists once."""
    server.freeze()
    p = harness.popen([str(environment.torchx), *RUN, "queue=default", *SH, "true"], cwd=work, stderr=harness.subprocess.PIPE,
                      text=True, env={"HOME": str(work), "KXFS_MOUNT": str(cluster.mnt)}, start_new_session=True)
    harness.wait_for(lambda: [req for req in server.requests if req.method == "POST"])
    p.send_signal(signal.SIGINT)
    _, said = p.communicate(timeout=harness.LIMIT)
    assert p.returncode != 0 and "KeyboardInterrupt" in said
    [name] = [name for name in cluster.ls("submit") if name.endswith(".json")]
    assert f"{cluster.mnt}/submit/{name}.job names it" in said
    server.thaw()
    harness.wait_for(lambda: f"{name}.job" in cluster.ls("submit"), what="the verdict")
    [obj] = launched_objects(server)
    assert cluster.job_of(name).id == obj["metadata"]["name"]


def test_no_answer_yet(cluster, environment, server, work):
    """A signal that interrupts waiting for the cluster does not count as a refusal. The command
    waits for the reply, and the job runs once."""
    server.freeze()
    p = harness.popen([str(environment.python), "-c", PRELUDE + NO_ANSWER], cwd=work, stdout=harness.subprocess.PIPE,
                      text=True, env={"HOME": str(work), "KXFS_MOUNT": str(cluster.mnt)})
    harness.wait_for(lambda: [req for req in server.requests if req.method == "POST"])
    p.send_signal(signal.SIGUSR1)
    harness.wait_for((work / "interrupted").exists)
    server.thaw()
    said, _ = p.communicate(timeout=harness.LIMIT)
    [obj] = launched_objects(server)
    assert said.strip() == f"kxfs://torchx/{obj['metadata']['name']}" and cluster.ls("submit") == []


def test_workspace(cluster, api, server):
    """TorchX builds the image and pushes it before the job is submitted."""
    done, handle = api(cluster, DOCKER + """
    os.mkdir("project")
    handle = runner.run(sh("true"), "kxfs", {"queue": "default", "image_repo": "example.com/me/x"},
                        workspace=f"{os.getcwd()}/project")
    answer([docker.done, handle])
    """)
    assert done == [["pull", "none"], ["build", "none", "project"], ["tag", "example.com/me/x", "f00d"],
                    ["push", "example.com/me/x", "f00d", []]]
    [obj] = launched_objects(server)
    assert obj["metadata"]["name"] == ident(handle)
    assert obj["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] == "example.com/me/x:f00d"


def test_no_docker(cluster, torchx, server):
    """A workspace needs an image repository and a Docker daemon. Each has its own error message,
    and nothing is launched."""
    run = ("run", "-s", "kxfs", "-cfg")
    nowhere = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}
    text = error_of(torchx(cluster, *run, "queue=default", *SH, "true", env=nowhere, check=False))
    assert "image_repo=" in text and "--workspace ''" in text
    text = error_of(torchx(cluster, *run, "queue=default,image_repo=example.com/x", *SH, "true", env=nowhere, check=False))
    assert "no Docker daemon answers" in text and "--workspace ''" in text
    assert not launched_objects(server)


def test_everything_that_torchx_writes(cluster, api, server):
    """Roles with every field that a role can have arrive unchanged."""
    handle = api(cluster, """
        from torchx.specs import BindMount, DeviceMount, Resource, RetryPolicy, VolumeMount
        role = Role("main", image="busybox", entrypoint="sh", args=["-c", "true"], env={"A": "ü ${app_id}", "B": "1"},
                    num_replicas=2, min_replicas=1, max_retries=3, retry_policy=RetryPolicy.REPLICA,
                    resource=Resource(cpu=2, gpu=1, memMB=4096, devices={"vpc.amazonaws.com/efa": 1},
                                      capabilities={"node.kubernetes.io/instance-type": "m5.large"}),
                    port_map={"http": 80}, metadata={"kubernetes": {"spec": {"tolerations": [{"key": "k"}]}}},
                    mounts=[BindMount("/a", "/b", read_only=True), VolumeMount("claim", "/c"), DeviceMount("/dev/kvm", "/dev/kvm")])
        answer(runner.run(AppDef("all", [role], metadata={"team": "x"}), "kxfs", {"queue": "default"}))
        """)
    [obj] = launched_objects(server)
    assert ident(handle) == obj["metadata"]["name"] and len(obj["spec"]["tasks"]) == 2
    pod = obj["spec"]["tasks"][0]["template"]["spec"]
    [container] = pod["containers"]
    assert {"name": "A", "value": f"ü {ident(handle)}"} in container["env"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1" and pod["tolerations"] == [{"key": "k"}]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/dev/shm", "/b", "/c", "/dev/kvm"]
    assert json.loads(cluster.read("jobs", ident(handle), "app.yaml"))["metadata"] == {"team": "x"}
