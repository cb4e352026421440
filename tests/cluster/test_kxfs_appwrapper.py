# SPDX-License-Identifier: MIT
"""Mounts of AppWrappers v1beta2, on a separate cluster, with the rights of contrib/rbac.yaml. The
definition of AppWrappers has the same name as MCAD's, so no cluster has both. With
KXFS_CLUSTER_NAMESPACE, the tests use the cluster of KUBECONFIG and its controller, if it serves
AppWrappers v1beta2."""

import os
import re
import sys

import api
import pytest
import yaml
from cluster import HERE, Cluster
from conftest import Given
from harness import actions, err_of, wait_for, write_ctl
from mounted import HOLD, World, app, begun, ended, phase
from process import Part

sys.path.append(str(HERE.parent / "golden"))

from golden import cases_of  # noqa: E402

DEFINITION = HERE.parent / "replay/data/crds/appwrapper.yaml"


class Wrapping(Cluster):
    """AppWrappers v1beta2 instead of Volcano's resources."""

    def apply_definitions(self):
        self.kubectl("apply", "--server-side", f"--filename={DEFINITION}")
        wait_for(lambda: self.is_served(api.path_of("appwrappers")), what="AppWrappers to be served")

    def start_volcano(self):
        self.parts["volcano"] = Part("appwrapper", self.base, [
            sys.executable, HERE / "controllers/appwrapper.py", self.kubectl_path,
            self.kubeconfig("volcano")]).start()


class Wrapped(World):
    resource, label = "appwrappers", "workload.codeflare.dev/appwrapper"


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
def kx(make_kx, world, limited):
    return make_kx("", source=f"appwrapper:{world.namespace}", env={"KUBECONFIG": str(limited)})


def test_to_the_end(kx, world):
    """A job is submitted, watched and followed to its end. Removing it removes its pods and its
    Service."""
    job = kx.submit(app(HOLD, num_replicas=2))
    made = world.jobs()[job.id]
    assert [c["template"]["kind"] for c in made["spec"]["components"]] == ["Pod", "Pod", "Service"]
    for name in ("main-0", "main-1"):
        begun(job, name)
    phase(job, "Running")
    assert job.state() == "RUNNING" and job.status()["roles"][0]["running"] == 2
    world.release_all(job.id)
    ended(job)
    phase(job, "Succeeded")
    for name in ("main-0", "main-1"):
        replica = job.replica(name)
        assert (replica["state"], replica["exit_code"], replica["attempt"]) == ("SUCCEEDED", 0, 0)
        assert job.read(name, "follow") == "begin\nend\n"
    assert job.read("why") == ""
    assert job.status()["created"] <= job.status()["started"] <= job.status()["finished"]
    job.cancel()
    world.until_none("pods", "services")
    assert not world.jobs() and kx.read("history", job.id, "main-0", "log") == "begin\nend\n"


def test_ctl(kx, world):
    """ctl offers suspend and resume, and nothing else. Both work. Each attempt has its own log."""
    job = kx.submit(app(HOLD))
    begun(job)
    phase(job, "Running")
    assert actions(job) == ["suspend"]
    write_ctl(job, "suspend")
    phase(job, "Suspended")
    assert job.state() == "CANCELLED" and actions(job) == ["resume"] and "suspended" in job.read("why")
    wait_for(lambda: not world.pods(job.id), what="its pod to be gone")
    assert err_of(write_ctl, job, "suspend") == "EINVAL"
    assert err_of(write_ctl, job, "terminate") == "ENOTSUP"
    write_ctl(job, "resume")
    pod = begun(job, attempt=1)
    phase(job, "Running")
    world.release(pod)
    job.finish()
    phase(job, "Succeeded")
    assert job.read("main-0", "log.0").startswith("begin\n") and job.read("main-0", "log") == "begin\nend\n"
    assert actions(job) == []


def test_create_failed(kx, world):
    """The server checks the wrapped objects only when they are created. The job then fails, and
    `why` has the server's message."""
    job = kx.submit(app(HOLD, args={"service_account": "nobody-there"}))
    job.finish("FAILED")
    assert "nobody-there" in job.read("why") and job.status()["reason"] == "CreateFailed"


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
