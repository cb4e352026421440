# SPDX-License-Identifier: MIT
"""Requests of a mount to a real cluster: what the server refuses, dry runs, and that reading sends
none."""

import os

import pytest
import yaml
from harness import run
from mounted import HOLD, IMAGE, app, probe, quota, refused, running
from process import wait_for

ADMISSION = "admissionregistration.k8s.io/v1"


# --- refused -----------------------------------------------------------------------------------


def test_queue(kx, world):
    """The message of Volcano's webhook reaches the user, also in a dry run."""
    for where in ("submit", "dryrun"):
        err, text = refused(kx, app(HOLD, args={"queue": "no-such-queue"}), where=where)
        assert err == "EINVAL" and 'no queue "no-such-queue"' in text
    assert not world.jobs() and not kx.ls("jobs")


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


# --- rights of the user ------------------------------------------------------------------------


@pytest.mark.parametrize("namespace_name", ["default", "no-such-namespace"])
def test_elsewhere(mount, limited, namespace_name):
    """If the user has no rights in a namespace, nothing is mounted. A missing namespace looks the
    same."""
    kx = mount(kubeconfig=limited, namespace=namespace_name, start=False)
    p = run(kx.command(), env=kx.env(), check=False)
    assert p.returncode == 1 and "or this namespace does not exist" in p.stderr and namespace_name in p.stderr
    assert not os.listdir(kx.mnt)


def test_reading_is_free(mount, world, cluster, limited):
    """Reading and listing send no requests, according to the server's audit log. Exceptions are
    watches, logs, and the request with which kxfs finds the pod of a new log."""
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
    assert any(entry["verb"] == "create" for entry in cluster.audit(user)), "the submission"
    asked = [(e["verb"], e["requestURI"]) for e in cluster.audit(user, since)
             if e["stage"] == "ResponseComplete" and "watch=" not in e["requestURI"]
             and "/log" not in e["requestURI"] and "fieldSelector=metadata.name" not in e["requestURI"]]
    assert not asked
