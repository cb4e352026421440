# SPDX-License-Identifier: MIT
"""Requests of a mount to a real cluster: cancelling, dry runs, and every kind of refusal."""

import os
import stat
import uuid

import api
import pytest
import yaml
from harness import err_of, run
from mounted import HOLD, IMAGE, app, ended, probe, quota, refused, running
from process import wait_for

ADMISSION = "admissionregistration.k8s.io/v1"


# --- cancelling --------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["rm -r", "rmdir"])
def test_cancel(kx, world, command):
    """When the command returns, the job is gone from the mount and the cluster. Its pods get
    SIGTERM."""
    job = kx.submit(app(HOLD))
    running(job)
    run([*command.split(), str(job.dir)])
    assert job.id not in kx.ls("jobs") and job.id not in world.jobs()
    wait_for(lambda: not world.pods(job.id), "its pods to go")
    assert "removed" in kx.read(".kxfs/log")


def test_cancel_again(kx, world):
    """A job that somebody else has deleted counts as cancelled."""
    job = kx.submit(app(HOLD))
    world.kubectl("delete", "jobs.batch.volcano.sh", job.id, "--wait=false")
    assert err_of(os.rmdir, job.dir) in ("", "ENOENT")
    wait_for(lambda: job.id not in kx.ls("jobs"), what="the job to go")


def test_cancel_others(kx, mount, world):
    """An accidental rm does not end other people's jobs, unless the mount has cancel=all."""
    job = kx.submit(app(HOLD))
    running(job)
    other = mount()
    wait_for(lambda: job.id in other.ls("jobs"), what="the job in the other mount")
    p = run(["rm", "-r", str(other / "jobs" / job.id)], check=False)
    assert p.returncode == 1 and "Operation not permitted" in p.stderr
    assert job.id in world.jobs() and job.until("RUNNING")
    everything = mount(options="queue=default,cancel=all")
    wait_for(lambda: job.id in everything.ls("jobs"), what="the job in the third mount")
    run(["rm", "-r", str(everything / "jobs" / job.id)])
    assert job.id not in world.jobs()
    wait_for(lambda: job.id not in kx.ls("jobs"), what="the job to go")


def test_cancel_forbidden(mount, world, tmp_path):
    """If the cluster refuses, the directory remains, with all its files."""
    kx = mount(kubeconfig=world.cluster.limited(world.namespace, tmp_path))
    job = kx.submit(app(HOLD))
    running(job)
    role = world.kubectl("get", "role", "kxfs", "-o", "yaml").stdout
    rules = yaml.safe_load(role)["rules"]
    for rule in rules:
        rule["verbs"] = [verb for verb in rule["verbs"] if verb != "delete"]
    world.cluster.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                         "metadata": {"name": "kxfs"}, "rules": rules}, namespace=world.namespace)
    wait_for(lambda: world.kubectl(
        "auth", "can-i", "delete", "jobs.batch.volcano.sh", "--as",
        f"system:serviceaccount:{world.namespace}:kxfs", check=False).stdout.strip() == "no", "the rights")
    p = run(["rm", "-r", str(job.dir)], check=False)
    assert p.returncode == 1 and "Permission denied" in p.stderr
    assert job.until("RUNNING") and "main-0" in kx.ls("jobs", job.id)
    assert "delete" in kx.read(".kxfs/log") and job.id in world.jobs()


# --- refused -----------------------------------------------------------------------------------


@pytest.fixture
def closed_queue(cluster):
    name = f"kxfs-{uuid.uuid4().hex[:8]}"
    cluster.apply({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                   "metadata": {"name": name}, "spec": {"weight": 1}})
    path = api.path_of("queues", None, name)
    wait_for(lambda: cluster.client.get(path).get("status", {}).get("state") == "Open", what="the queue")
    cluster.client.merge(path + "/status", {"status": {"state": "Closed"}})
    yield name
    cluster.client.delete(path)


@pytest.mark.parametrize("where", ["submit", "dryrun"])
def test_queue(kx, world, closed_queue, where):
    """Volcano's webhook refuses both queues, also in a dry run."""
    err, text = refused(kx, app(HOLD, args={"queue": closed_queue}), where=where)
    assert err == "EINVAL" and f'"{closed_queue}"' in text and "Closed" in text
    err, text = refused(kx, app(HOLD, args={"queue": "no-such-queue"}), where=where)
    assert err == "EINVAL" and 'no queue "no-such-queue"' in text
    assert not world.jobs() and not kx.ls("jobs")


def test_refused_then_right(kx, world):
    """A refused file remains, so that the user can correct it. The refusal is shown until the next
    result."""
    text = app(HOLD, args={"queue": "no-such-queue"})
    assert refused(kx, text)[0] == "EINVAL"
    assert kx.read("submit/app.yaml") == text and "app.yaml.job" not in kx.ls("submit")
    run(["sed", "-i", "s/no-such-queue/default/", str(kx / "submit/app.yaml")])
    assert "app.yaml.error" not in kx.ls("submit")
    assert list(world.jobs()) == [kx.job_of("app.yaml").id]


def test_quota(kx, world):
    quota(world, "jobs")
    job = kx.submit(app(HOLD))
    (kx.base / "app.yaml").write_text(app(HOLD))
    p = run(["cp", str(kx.base / "app.yaml"), str(kx / "submit/second.yaml")], check=False)
    assert p.returncode == 1 and "Disk quota exceeded" in p.stderr
    assert "quota few" in kx.read("submit/second.yaml.error")
    assert list(world.jobs()) == [job.id] and kx.ls("jobs") == [job.id]
    world.kubectl("delete", "quota", "few")


def needs_label(world):
    """Return whether the API server applies the policy below. It notices the policy, and its
    removal, slightly later."""
    return "cost-center" in probe(world, "jobs")


@pytest.fixture
def policy(cluster, world):
    """Create an admission policy in the namespace: jobs need a label."""
    name = f"{world.namespace}.kxfs.test"
    cluster.apply(
        {"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
         "spec": {"failurePolicy": "Fail",
                  "matchConstraints": {"resourceRules": [{
                      "apiGroups": ["batch.volcano.sh"], "apiVersions": ["*"],
                      "operations": ["CREATE"], "resources": ["jobs"]}]},
                  "validations": [{"expression": "has(object.metadata.labels) && 'cost-center' in object.metadata.labels",
                                   "message": "every job needs the label cost-center"}]}},
        {"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
         "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": {
             "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}}}})
    yield
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        cluster.kubectl("delete", kind, name, "--wait=false")
    wait_for(lambda: not needs_label(world), what="the policy to be gone")


def test_admission_policy(kx, world, policy):
    """The message of the policy reaches the user."""
    wait_for(lambda: needs_label(world), what="the policy to act")
    err, text = refused(kx, app(HOLD))
    assert err == "EINVAL" and "every job needs the label cost-center" in text
    assert not world.jobs() and not kx.ls("jobs")


def test_strict(kx, world):
    """A ready manifest with an unknown field is refused. It is not launched without that field."""
    text = yaml.safe_dump({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "ready"},
        "spec": {"queue": "default", "minAvaliable": 1, "tasks": [{
            "name": "one", "replicas": 1, "template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "one", "image": IMAGE}]}}}]}})
    err, said = refused(kx, text)
    assert err == "EINVAL" and "spec.minAvaliable" in said and not world.jobs()
    kx.write("submit/app.yaml", text.replace("minAvaliable", "minAvailable"))
    assert kx.job_of("app.yaml").id == "ready"


def test_dry_run(kx, world):
    """The server checks a dry run, and launches nothing. The manifest can be read and submitted."""
    (kx.base / "app.yaml").write_text(app(HOLD, name="later"))
    run(["cp", str(kx.base / "app.yaml"), str(kx / "dryrun/")])
    manifest = yaml.safe_load(kx.read("dryrun/app.yaml"))
    assert manifest["kind"] == "Job" and manifest["spec"]["queue"] == "default"
    assert not world.jobs() and not kx.ls("jobs")
    run(["cp", str(kx / "dryrun/app.yaml"), str(kx / "submit/ready.yaml")])
    assert list(world.jobs()) == [kx.job_of("ready.yaml").id] == [manifest["metadata"]["name"]]


def test_read_only(mount, world):
    kx = mount(options="queue=default,ro")
    assert err_of(kx.write, "submit/app.yaml", app(HOLD)) == "EROFS" and not world.jobs()


# --- rights of the user ------------------------------------------------------------------------


def test_limited_user(mount, world, limited):
    """The rights of contrib/rbac.yaml are enough for everything."""
    kx = mount(kubeconfig=limited)
    kx.write("dryrun/app.yaml", app(HOLD))
    job = kx.submit(app(HOLD))
    world.release(running(job), 4)
    ended(job, "FAILED")
    assert job.replica()["exit_code"] == 4
    again = kx.submit(app(HOLD))
    running(again)
    run(["rm", "-r", str(again.dir), str(job.dir)])
    assert not world.jobs() and not kx.ls("jobs")
    assert "connected: true" in kx.read(".kxfs/info")


@pytest.mark.parametrize("namespace_name", ["default", "no-such-namespace"])
def test_elsewhere(mount, limited, namespace_name):
    """If the user has no rights in a namespace, nothing is mounted. A missing namespace looks the
    same."""
    kx = mount(kubeconfig=limited, namespace=namespace_name, start=False)
    p = run(kx.command(), env=kx.env(), check=False)
    assert p.returncode == 1 and "or this namespace does not exist" in p.stderr and namespace_name in p.stderr
    assert stat.S_ISDIR(os.stat(kx.mnt).st_mode) and not os.listdir(kx.mnt)


def test_reading_is_free(mount, world, cluster, limited):
    """Reading, listing and waiting send no requests, according to the server's audit log. New logs
    do, and each sends one request to find out which pod it belongs to."""
    if not hasattr(cluster, "audit"):
        pytest.fail("this cluster's audit log can't be read")
    kx = mount(kubeconfig=limited)
    job = kx.submit(app(HOLD, num_replicas=2))
    running(job, "main-0"), running(job, "main-1")
    job.until("RUNNING")
    since = os.path.getsize(cluster.audit_log)
    for _ in range(20):
        run(f"ls -lR {kx.mnt}; cat {job.dir}/*/status {job.dir}/st* {job.dir}/why {job.dir}/*.yaml; "
            f"df {kx.mnt}; stat {job.dir}; cat {kx.mnt}/.kxfs/*")
    user = f"system:serviceaccount:{world.namespace}:kxfs"
    asked = [(e["verb"], e["requestURI"]) for e in cluster.audit(user, since)
             if e["stage"] == "ResponseComplete" and "watch=" not in e["requestURI"]
             and "/log" not in e["requestURI"] and "fieldSelector=metadata.name" not in e["requestURI"]]
    assert not asked
