# SPDX-License-Identifier: MIT
"""Fixtures of the tests on a real Kubernetes.

  cluster       the cluster of this run. All tests share it, so none may disturb it:
                .kubectl(...), .apply(objects), .client (api.py), .audit(user), and
                .kubeconfig("admin" | "token" | "cert"): users with a client certificate,
                a token, a client certificate. It has Volcano's definitions and the test
                controllers.
  own_cluster   a separate cluster for a test that stops parts: .parts["apiserver"].stop()
                and .start(), .wait_apiserver(); also etcd, controller-manager, scheduler,
                volcano; .node.kubelet; .node.containerd.stop() and
                .node.start_containerd(). It starts in about ten seconds.
  namespace     a new namespace of `cluster`, removed with its contents after the test
  limited       the kubeconfig of a user who has only the rights of contrib/rbac.yaml, in
                `namespace`
  make_kx       as in all tests with mounts: make_kx(source=f"volcano:{namespace}",
                env={"KUBECONFIG": str(cluster.kubeconfig("token"))})
  mount         mount(kubeconfig=..., options=..., namespace=...) -> Kxfs, made by make_kx.
                By default it mounts `namespace` as the user `token`, with queue=default
  kx, world     a mount of `namespace`; access to the same namespace without kxfs (mounted.py)
  load_job(name)  a Volcano job (dict) that TorchX created: the first object of a recording
  wait_job(namespace, name, *phases)  wait until the job is in one of the phases, return it

The only image is docker.io/library/busybox:1.35. The node has as many CPUs as the machine, so
request little (cpu 0.1) unless the test is about capacity. `pytest -n N --dist loadfile` runs test
files in parallel on one cluster, except those that have their own.

With KXFS_CLUSTER_NAMESPACE, the same tests run in that namespace of the cluster of KUBECONFIG (or
kubectl's default), which must have Volcano. Nothing else may use the namespace while they run, so
-n is not possible. Tests that need their own cluster start one all the same. test_cluster.py only
tests our own cluster."""

import json
import os
import pathlib
import shutil
import uuid

import api
import build
import pytest
from cluster import Cluster, Kubectl, Running
from mounted import World
from process import wait_for
from story import recordings

SHARED = "KXFS_CLUSTER_BASE"  # tells the workers of `pytest -n` where the cluster is


class Given(Kubectl):
    """A cluster that somebody else runs, with the real Volcano or another implementation."""

    def __init__(self):
        self.kubectl_path = shutil.which("kubectl") or build.parts() / "kubectl"
        self.admin = os.environ.get("KUBECONFIG")
        self.client = api.from_kubeconfig(self.kubectl_path)

    def kubeconfig(self, _name):
        return pathlib.Path(self.admin or os.path.expanduser("~/.kube/config"))

    def has_account(self, _namespace):
        return True


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    """With -n, start the shared cluster in the process that distributes the tests."""
    config = session.config
    if (config.pluginmanager.hasplugin("dsession") and not config.option.collectonly
            and "KXFS_CLUSTER_NAMESPACE" not in os.environ):
        config.kxfs_cluster = Cluster().start()
        os.environ[SHARED] = str(config.kxfs_cluster.base)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if hasattr(session.config, "kxfs_cluster"):
        session.config.kxfs_cluster.stop()


@pytest.fixture(scope="session")
def cluster():
    if "KXFS_CLUSTER_NAMESPACE" in os.environ:
        yield Given()
    elif SHARED in os.environ:
        yield Running(os.environ[SHARED])
    else:
        with Cluster() as own:
            yield own


@pytest.fixture
def own_cluster():
    with Cluster() as own:
        yield own


@pytest.fixture
def namespace(cluster):
    given = os.environ.get("KXFS_CLUSTER_NAMESPACE")
    name = given or f"kxfs-{uuid.uuid4().hex[:8]}"
    if not given:
        cluster.kubectl("create", "namespace", name)
    wait_for(lambda: cluster.has_account(name), f"the namespace {name}")
    yield name
    for resource, parameters in (("jobs", ""), ("pods", "?gracePeriodSeconds=0"), ("resourcequotas", "")):
        cluster.client.delete(api.path_of(resource, name) + parameters)
    if given:
        wait_for(lambda: not cluster.client.items(api.path_of("pods", name)), "pods to be gone")
    else:
        cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def limited(cluster, namespace, tmp_path):
    return cluster.limited(namespace, tmp_path)


@pytest.fixture
def mount(make_kx, cluster, request):
    def make(kubeconfig=None, options="queue=default", namespace=None, env=None, **kwargs):
        path = kubeconfig or cluster.kubeconfig("token")
        name = namespace or request.getfixturevalue("namespace")
        return make_kx(options, source=f"volcano:{name}", env={"KUBECONFIG": str(path), **(env or {})},
                       **kwargs)

    return make


@pytest.fixture
def kx(mount):
    return mount()


@pytest.fixture
def world(cluster, namespace):
    return World(cluster, namespace)


@pytest.fixture(scope="session")
def load_job():
    def load(scenario):
        job = json.loads(recordings.parts(scenario)["volcano-jobs"][0])["object"]
        return {"apiVersion": job["apiVersion"], "kind": job["kind"], "spec": job["spec"],
                "metadata": {"name": job["metadata"]["name"]}}

    return load


@pytest.fixture
def wait_job(cluster):
    def wait(namespace, name, *phases):
        def reached():
            job = cluster.client.get(api.path_of("jobs", namespace, name))
            return job if job.get("status", {}).get("state", {}).get("phase") in phases else None

        return wait_for(reached, f"job {name} to be {' or '.join(phases)}")

    return wait
