# SPDX-License-Identifier: MIT
"""Mounts of MCAD's AppWrappers v1beta1, on a separate cluster. Their definition has the same name
as that of v1beta2. With KXFS_CLUSTER_NAMESPACE, the tests use the given cluster, if it serves them.
"""

import json
import os
import sys

import api
import pytest
import yaml
from cluster import HERE, Cluster
from conftest import Given
from harness import wait_for
from mounted import HOLD, World, app, running
from process import Part
from test_kxfs_torchx import knows_our_job, program, torchx  # noqa: F401

DEFINITION = HERE.parent / "replay/data/crds/mcad.yaml"
sys.path.insert(0, str(HERE.parent / "golden"))

import golden  # noqa: E402

# Cases that the server must refuse: an empty priority class, and an unknown field in an overlay.
REFUSED = {"volcano": {"167-volcano-empty-strings", "207-new-overlay-flat-spec"}, "mcad": set()}
BASE = "/apis/workload.codeflare.dev/v1beta1"


class Queueing(Cluster):
    """MCAD beside Volcano."""

    def apply_definitions(self):
        super().apply_definitions()
        self.kubectl("apply", "--server-side", f"--filename={DEFINITION}")
        wait_for(lambda: self.is_served(f"{BASE}/appwrappers"), what="AppWrappers to be served")

    def start_volcano(self):
        super().start_volcano()
        self.parts["mcad"] = Part("mcad", self.base, [
            sys.executable, HERE / "controllers/mcad.py", self.kubectl_path, self.kubeconfig("volcano")]).start()


class Queued(World):
    resource, label = "appwrappers", "appwrapper.mcad.ibm.com"

    def path(self, resource, name=None):
        if resource != "appwrappers":
            return super().path(resource, name)
        return f"{BASE}/namespaces/{self.namespace}/appwrappers" + (f"/{name}" if name else "")


@pytest.fixture(scope="module")
def cluster():
    if "KXFS_CLUSTER_NAMESPACE" not in os.environ:
        with Queueing() as own:
            yield own
        return
    given = Given()
    try:
        given.client.get(BASE)
    except api.Refused as e:
        pytest.skip(f"no AppWrappers v1beta1: {e}")
    yield given


@pytest.fixture
def world(cluster, namespace):
    world = Queued(cluster, namespace)
    yield world
    cluster.client.delete(world.path("appwrappers"))


@pytest.fixture
def kx(make_kx, cluster, world):
    return make_kx("", source=f"mcad:{world.namespace}", env={"KUBECONFIG": str(cluster.kubeconfig("token"))})


def test_to_the_end(kx, world):
    """A job has finished when its pods have, although MCAD still reports Running. Removing the job
    removes its pods and its Service."""
    job = kx.submit(app(HOLD, num_replicas=2))
    items = world.jobs()[job.id]["spec"]["resources"]["GenericItems"]
    assert [item["generictemplate"]["kind"] for item in items] == ["Pod", "Pod", "Service"]
    for replica in ("main-0", "main-1"):
        running(job, replica)
    job.until("RUNNING")
    wait_for(lambda: job.status()["phase"] == "Running", what="MCAD's word")
    assert yaml.safe_load(kx.read(".kxfs", "info"))["kinds"][0]["api"] == "workload.codeflare.dev/v1beta1"
    world.release_all(job.id)
    job.finish()
    assert job.status()["phase"] == "Running"
    for name in ("main-0", "main-1"):
        replica = job.replica(name)
        assert (replica["state"], replica["exit_code"], replica["attempt"]) == ("SUCCEEDED", 0, 0)
        assert job.read(name, "follow") == "begin\nend\n"
    assert job.read("why") == ""
    job.cancel()
    world.until_none("pods", "services")
    assert not world.jobs() and kx.read("history", job.id, "main-0", "log") == "begin\nend\n"


def test_torchx(kx, world, torchx):  # noqa: F811
    knows_our_job(kx, world, torchx, "kubernetes_mcad")


@pytest.mark.parametrize("kind", ["volcano", "mcad"])
def test_goldens(cluster, namespace, kind):
    """The real definitions accept the manifests of all golden AppDefs, under strict validation."""
    place = {"volcano": f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs",
             "mcad": f"{BASE}/namespaces/{namespace}/appwrappers"}[kind]
    taken, refused = 0, {}
    for name in golden.NAMES:
        case = golden.Input(name)
        if kind not in case.kinds():
            continue
        options, _ = case.options(kind)
        options.update({"queue": "default"} if kind == "volcano" else {})
        status, text, _ = golden.run(kind, case.path, namespace, options)
        if status != 0:
            continue  # kxfs itself refuses it
        try:
            cluster.client.post(f"{place}?fieldValidation=Strict&dryRun=All", yaml.safe_load(text))
            taken += 1
        except api.Refused as e:
            refused[name] = e.message
    assert set(refused) == REFUSED[kind], json.dumps(refused, indent=1)
    assert taken > 60
