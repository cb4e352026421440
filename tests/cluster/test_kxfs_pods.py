# SPDX-License-Identifier: MIT
"""contrib/kubernetes unchanged, on a separate cluster: capture in a namespace with the restricted
pod security policy, and a notebook in another namespace."""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import textwrap

import api
import build
import harness
import pytest
import records
import yaml
from cluster import Cluster
from harness import wait_for
from mounted import HOLD, IMAGE, World, app
from relay import Service

sys.path.append(str(build.ROOT / "tests/replay"))
import bucket as s3  # noqa: E402

pytestmark = pytest.mark.timeout(1500)  # includes the time to build the image
ROOT = build.ROOT
FOLDER = ROOT / "contrib/kubernetes"
NAME = "kxfs-capture"
S3 = ("10.96.0.2", 9000)
USER = 65532
# What the restricted policy requires of a job's pod.
RESTRICTED = {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
LINES = 20000
PRINTS = f"seq {LINES}; {HOLD}"
TEXT = "".join(f"{i}\n" for i in range(1, LINES + 1)) + "begin\n"


def rendered(folder=FOLDER):
    text = subprocess.run([build.parts() / "kubectl", "kustomize", folder], stdout=subprocess.PIPE, check=True, text=True).stdout
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


def test_of_ones_own(tmp_path):
    """The kustomization of docs/pods.md works. Two pods never use the volume at the same time."""
    shutil.copytree(FOLDER, tmp_path / "kubernetes")
    page = (ROOT / "docs/pods.md").read_text()
    text = textwrap.dedent(re.search(r"^    apiVersion: .*?(?=^\S)", page, re.M | re.S)[0])
    (tmp_path / "kustomization.yaml").write_text(text)
    made = rendered(tmp_path)
    assert {one["metadata"]["namespace"] for one in made.values()} == {"training"}
    assert made["RoleBinding"]["subjects"][0]["namespace"] == "training"
    spec = made["Deployment"]["spec"]
    assert spec["replicas"] == 1 and spec["strategy"] == {"type": "Recreate"}
    pod = spec["template"]["spec"]
    assert pod["containers"][0]["image"] == "registry.example.com/kxfs:1.0.0"
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
    assert made["ConfigMap"]["data"]["options"].startswith("spool_limit=80G,") and made["ConfigMap"]["metadata"]["name"] in str(pod)
    assert made["PersistentVolumeClaim"]["spec"]["resources"]["requests"]["storage"] == "100Gi"


def test_rights():
    """The rights are those of contrib/rbac.yaml, without those for writing."""
    role = next(yaml.safe_load_all((ROOT / "contrib/rbac.yaml").read_text()))
    wanted = []
    for rule in role["rules"]:
        verbs = [verb for verb in rule["verbs"] if verb in ("get", "list", "watch")]
        if verbs and (rule["resources"], verbs) != (["localqueues"], ["get"]):
            wanted.append({**rule, "verbs": verbs})
    assert sorted(rendered()["Role"]["rules"], key=str) == sorted(wanted, key=str)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """Build the image with contrib/package, for this machine's architecture only."""
    kept = os.environ.get("KXFS_PACKAGE_DIR")
    top = pathlib.Path(kept) / "packages" if kept else tmp_path_factory.mktemp("image")
    if not list(top.glob("kxfs-*-image.tar")):
        arch = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
        subprocess.run([ROOT / "contrib/package", "image", top], check=True, timeout=1500, stdin=subprocess.DEVNULL,
                       env={**os.environ, "KXFS_ARCHITECTURES": arch})
    (found,) = top.glob("kxfs-*-image.tar")
    return found


@pytest.fixture(scope="module")
def cluster(image):
    """Yield a cluster whose kubelet does not rotate the logs of PRINTS. A kubelet serves only the
    current file of a log, so output that is rotated away before kxfs reads it can't be captured."""
    with Cluster(volcano=False, log_size="2Mi") as own, Service(own):
        own.node.ctr("-n", "k8s.io", "images", "import", image)
        yield own


@pytest.fixture
def volume(cluster, request):
    """Yield the directory that the node mounts for the claim. Files are below kxfs/."""
    name = request.node.name.replace("_", "-")
    path = cluster.base / name
    path.mkdir()
    os.chown(path, USER, USER)
    cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": str(path)}}})
    yield path / "kxfs"
    cluster.kubectl("delete", "pv", name, "--wait=false")


def submit(cluster, name, script):
    cluster.client.post(api.path_of("jobs.batch", "default"), {"metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": {"spec": {
        "restartPolicy": "Never", "securityContext": RESTRICTED, "terminationGracePeriodSeconds": 1, "containers": [{
            "name": "main", "image": IMAGE, "command": ["sh", "-c", script], "securityContext": CONTAINER}]}}}})


def captured(volume, job):
    """Return the captured log of the job in the volume."""
    return "".join(path.read_text() for path in (harness.folder(volume, job) / "logs").glob("*") if path.stat().st_size)


def until_captured(cluster, volume, jobs, text):
    """Wait until the volume has exactly TEXT of each of JOBS."""
    def state():
        found = {name: captured(volume, name) for name in jobs}
        return [f"{len(text)} bytes captured of each, not", {name: (len(got), got[:20]) for name, got in found.items()}, *(
            cluster.kubectl(*args, check=False).stdout
            for args in (("get", "pv,pvc,pods", "-o", "wide"), ("get", "events"), ("logs", f"deployment/{NAME}"))),
            *(path.read_text() for path in cluster.base.glob("test-*/kxfs/metrics")),
            [(entry["stageTimestamp"], entry["stage"], entry["requestURI"], entry.get("responseStatus", {}).get("code"))
             for entry in cluster.audit(f"system:serviceaccount:default:{NAME}") if "/log?" in entry["requestURI"]]]

    wait_for(lambda: all(captured(volume, name) == text for name in jobs), what=state)


def told(volume, job, text):
    """Wait until the job's record contains TEXT."""
    wait_for(lambda: (path := harness.record(volume, job)).exists() and text in path.read_text(), what=f"{text} of {job}")


def until_history(volume, job):
    """Wait until the job is recorded as part of the history."""
    wait_for(lambda: (path := harness.record(volume, job)).exists() and records.is_history(path), what=f"{job} in the history")


def roll_out(cluster):
    try:
        cluster.kubectl("rollout", "status", f"deployment/{NAME}", "--timeout=120s")
    except AssertionError as e:
        pods = cluster.kubectl("describe", "pods").stdout
        raise AssertionError(pods + cluster.kubectl("logs", f"deployment/{NAME}", check=False).stdout) from e


def test_capture(cluster, volume, make_kx):
    """One job disappears with its pod while nothing is mounted. On SIGTERM, everything of the other
    job is saved, and the next pod continues with it. A mount of the volume's contents then shows
    both."""
    world = World(cluster, "default")
    cluster.kubectl("label", "namespace", "default", "pod-security.kubernetes.io/enforce=restricted")
    cluster.kubectl("apply", "-k", FOLDER)
    roll_out(cluster)
    assert (volume / "ready").exists()
    for name in ("goes", "stays"):
        submit(cluster, name, PRINTS)
    until_captured(cluster, volume, ("goes", "stays"), TEXT)
    pods = {pod["metadata"]["labels"].get("batch.kubernetes.io/job-name"): pod["metadata"]["name"]
            for pod in cluster.client.items(world.path("pods"))}
    world.release(pods["goes"], 0)
    told(volume, "goes", '"exit_code":0')
    # The node keeps a log only as long as its pod.
    until_captured(cluster, volume, ("goes",), TEXT + "end\n")
    cluster.kubectl("delete", "job", "goes")
    until_history(volume, "goes")
    assert captured(volume, "goes") == TEXT + "end\n"

    cluster.kubectl("scale", "deployment", NAME, "--replicas=0")
    wait_for(lambda: pods[None] not in [pod["metadata"]["name"] for pod in cluster.client.items(world.path("pods"))],
             what="the pod to be gone")
    # The killed pod leaves the file `ready`, and the next start removes it.
    assert not (volume / "ready").exists() and captured(volume, "stays") == TEXT
    world.release(pods["stays"], 3)
    cluster.kubectl("scale", "deployment", NAME, "--replicas=1")
    roll_out(cluster)
    told(volume, "stays", '"exit_code":3')
    until_captured(cluster, volume, ("stays",), TEXT + "end\n")
    written = [entry["requestURI"] for entry in cluster.audit(f"system:serviceaccount:default:{NAME}")
               if entry["verb"] not in ("get", "list", "watch")]
    assert written == []
    cluster.kubectl("delete", "-k", FOLDER)

    kx = make_kx(source="default", env={"KUBECONFIG": str(cluster.admin)}, start=False)
    shutil.rmtree(kx.state)
    shutil.copytree(volume, kx.state)
    kx.start()
    assert kx.history() == ["goes"] and kx.ls("jobs") == ["stays"]
    assert kx.read("history", "goes", "main-0", "log") == TEXT + "end\n"
    assert "exit code 3" in kx.read("jobs", "stays", "why")


def rclone_image(path, name):
    """Build an image of this machine's rclone that starts rclone, as the official one does."""
    buffer = io.BytesIO()
    program = shutil.which("rclone")
    with build.layer_of(buffer) as layer:
        for file in build.libraries(program):
            build.add_file(layer, file[1:], pathlib.Path(file).read_bytes(), 0o755)
        build.add_file(layer, "usr/local/bin/rclone", pathlib.Path(program).read_bytes(), 0o755)
    layers = [build.busybox_layer(), buffer.getvalue()]
    digests = [hashlib.sha256(layer).hexdigest() for layer in layers]
    config = {"architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine], "os": "linux",
              "config": {"Entrypoint": ["rclone"], "Env": ["PATH=/usr/local/bin:/usr/bin:/bin:/sbin"]},
              "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]}}
    with tarfile.open(path, "w") as archive:
        for digest, layer in zip(digests, layers):
            build.add_file(archive, f"{digest}.tar", layer)
        build.add_file(archive, "config.json", json.dumps(config).encode())
        build.add_file(archive, "manifest.json", json.dumps([{"Config": "config.json", "RepoTags": [name],
                                                              "Layers": [f"{digest}.tar" for digest in digests]}]).encode())


def rclone_config(url):
    """Return the rclone configuration of docs/pods.md, for a bucket at URL."""
    page = (ROOT / "docs/pods.md").read_text()
    text = textwrap.dedent(re.search(r"^    \[bucket\]\n.*?(?=^\S)", page, re.M | re.S)[0])
    for old, new in (("BUCKET/PREFIX", "jobs/cluster-1"), ("https://minio.example.com:9000", url),
                     ("access_key_id = ...", f"access_key_id = {s3.KEY}"),
                     ("secret_access_key = ...", f"secret_access_key = {s3.SECRET}")):
        assert old in text
        text = text.replace(old, new)
    return text + f"region = {s3.REGION}\n"


def test_bucket(cluster, volume, tmp_path):
    """The overlay s3: jobs run and are deleted while nothing is mounted. The archive has their
    output, states and reasons, and the bucket has exactly the files of the archive."""
    world = World(cluster, "default")
    made = rendered(FOLDER / "s3")
    pod = made["Deployment"]["spec"]["template"]["spec"]
    (image,) = {one["image"] for one in (*pod["initContainers"], *pod["containers"]) if "rclone" in one["image"]}
    rclone_image(tmp_path / "rclone.tar", image)
    cluster.node.ctr("-n", "k8s.io", "images", "import", tmp_path / "rclone.tar")
    cluster.kubectl("label", "namespace", "default", "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    with s3.Bucket(tmp_path / "s3") as bucket, Service(cluster, S3, bucket.port):
        (bucket.data / "jobs").mkdir()
        (tmp_path / "rclone.conf").write_text(rclone_config(f"http://{S3[0]}:{S3[1]}"))
        cluster.kubectl("create", "secret", "generic", "kxfs-archive", f"--from-file={tmp_path}/rclone.conf")
        cluster.kubectl("apply", "-k", FOLDER / "s3")
        roll_out(cluster)
        codes = {"good": 0, "bad": 3}
        for name in codes:
            submit(cluster, name, PRINTS)
        until_captured(cluster, volume, codes, TEXT)
        archive = volume.with_name("archive")
        pods = {pod["metadata"]["labels"].get("batch.kubernetes.io/job-name"): pod["metadata"]["name"]
                for pod in cluster.client.items(world.path("pods"))}
        for name, code in codes.items():
            world.release(pods[name], code)
            told(volume, name, f'"exit_code":{code}')
            until_captured(cluster, volume, (name,), TEXT + "end\n")
            condition = "failed" if code else "complete"
            cluster.kubectl("wait", f"--for=condition={condition}", f"job/{name}", "--timeout=120s")
            cluster.kubectl("delete", "job", name)
            wait_for(lambda name=name: list(archive.glob(f"default/2*/{name}/uid")), what=f"{name} in the archive")
        files = {path.relative_to(archive): path.read_bytes() for path in archive.glob("default/2*/**/*") if path.is_file()}
        assert len({path.parts[2] for path in files} & set(codes)) == 2 and len(files) > 16
        top = bucket.data / "jobs/cluster-1"
        wait_for(lambda: all((top / path).exists() and (top / path).read_bytes() == text for path, text in files.items()),
                 what=lambda: cluster.kubectl("logs", f"deployment/{NAME}", "-c", "bucket", check=False).stdout)
        assert not list(top.rglob(".*"))
        cluster.kubectl("delete", "-k", FOLDER / "s3", "--timeout=120s")
        cluster.kubectl("delete", "secret", "kxfs-archive")

    for name, state in (("good", "SUCCEEDED\n"), ("bad", "FAILED\n")):
        (job,) = archive.glob(f"default/2*/{name}")
        assert (job / "state").read_text() == state
        assert (job / "main-0/log").read_text() == f"{TEXT}end\n"
    assert "exit code 3" in (job / "why").read_text()


# busybox's cat uses sendfile, which considers a file of size 0 empty and does not read it.
NOTEBOOK = f"""cd /tmp
cat >good.yaml <<'END'
{app("echo from a pod")}
END
echo 'name: bad' >bad.yaml
cp good.yaml /mnt/kxfs/submit/
head -n 1 /mnt/kxfs/submit/good.yaml.job/wait
cat /mnt/kxfs/submit/good.yaml.job/main-0/log
cp bad.yaml /mnt/kxfs/submit/ 2>/dev/null || cat /mnt/kxfs/submit/bad.yaml.error
grep ^writers /mnt/kxfs/.kxfs/info
while [ ! -s /code ]; do sleep 0.1; done
until cat /mnt/kxfs/submit/good.yaml.job/state 2>/dev/null; do sleep 0.1; done
"""


@pytest.fixture(scope="module")
def notebooks(cluster):
    """Yield a namespace with the service account and rights for notebooks, as the head of
    notebook.yaml explains."""
    name = "notebooks"
    cluster.kubectl("create", "namespace", name)
    wait_for(lambda: cluster.has_account(name), what="the namespace")
    for line in re.findall(r"^#\tkubectl (.*)$", (FOLDER / "notebook.yaml").read_text(), re.M):
        line = line.replace("NAMESPACE", name).replace("rbac.yaml", str(ROOT / "contrib/rbac.yaml"))
        cluster.kubectl("-n", name, *line.split())
    return World(cluster, name)


def test_notebook(cluster, notebooks):
    """Another user in another container of the pod submits, waits and reads. That continues after
    kxfs was killed and restarted. At the end the mount is unmounted, so that the pod can end."""
    pod = yaml.safe_load((FOLDER / "notebook.yaml").read_text())
    pod["spec"]["restartPolicy"] = "Never"
    pod["spec"]["containers"][0].update(image=IMAGE, command=["sh", "-c", NOTEBOOK])
    cluster.apply(pod, namespace=notebooks.namespace)
    path = notebooks.path("pods", "notebook")

    def said(container):
        return notebooks.kubectl("logs", "notebook", "-c", container, check=False).stdout

    def sidecar():
        return cluster.client.get(path)["status"]["initContainerStatuses"][1]

    wait_for(lambda: "writers" in said("notebook"), what="the notebook's words")
    ident = sidecar()["containerID"].rpartition("/")[2]
    for process in pathlib.Path("/proc").glob("[0-9]*/cgroup"):
        with contextlib.suppress(OSError):
            if ident in process.read_text():
                os.kill(int(process.parent.name), signal.SIGKILL)
    wait_for(lambda: sidecar()["restartCount"] == 1 and sidecar()["started"], what="kxfs to be up again")
    notebooks.release("notebook")
    wait_for(lambda: cluster.client.get(path)["status"]["phase"] in ("Succeeded", "Failed"), what="its end")
    assert said("notebook") == ("SUCCEEDED\nfrom a pod\nbad.yaml:1:1: roles is missing\nwriters: 'seen'\nSUCCEEDED\n"), said("kxfs")
    assert said("kxfs").endswith("kxfs received a signal and ends this mount\n")
    notebooks.kubectl("delete", "pod", "notebook", "--timeout=60s")


def test_other_notebooks(cluster, notebooks):
    """The API server accepts each field of the pods that can't run here."""
    pods = [(FOLDER / name).read_text() for name in ("notebook-user-namespace.yaml", "notebook-csi.yaml")]
    for text in pods:
        cluster.kubectl("apply", "-n", notebooks.namespace, "--dry-run=server", "--validate=strict", "-f", "-", input=text)
    wrong = pods[0].replace("hostUsers", "hostUser")
    p = cluster.kubectl("apply", "-n", notebooks.namespace, "--dry-run=server", "--validate=strict", "-f", "-", input=wrong, check=False)
    assert p.returncode and 'unknown field "spec.hostUser"' in p.stderr
