# SPDX-License-Identifier: MIT
"""One mount of all kinds, with the rights of contrib/rbac.yaml, on a separate cluster that serves
all kinds. Also: for tests/golden/kubectl.yaml, kxfs accepts what `kubectl create` accepts, as the
same object, and refuses what it refuses."""

import json
import sys

import api
import pytest
import test_kxfs_appwrapper
import test_kxfs_jobset
import yaml
from cluster import HERE, Cluster
from harness import err_of, wait_for
from mounted import HOLD, World, app, begun, ended
from process import Part

sys.path[1:1] = [str(HERE.parent / "golden")]

import test_kubectl as kubectl  # noqa: E402
from golden import difference, load  # noqa: E402

KINDS = {"volcano": "jobs", "appwrapper": "appwrappers", "jobset": "jobsets", "job": "jobs.batch"}


class Everything(Cluster):
    def apply_definitions(self):
        super().apply_definitions()
        for module, resource in ((test_kxfs_appwrapper, "appwrappers"), (test_kxfs_jobset, "jobsets")):
            self.kubectl("apply", "--server-side", f"--filename={module.DEFINITION}")
            wait_for(lambda r=resource: self.is_served(api.path_of(r)), what=f"{resource} to be served")

    def start_volcano(self):
        super().start_volcano()
        for name in ("appwrapper", "jobset"):
            self.parts[name] = Part(name, self.base, [sys.executable, HERE / f"controllers/{name}.py", self.kubectl_path,
                                                      self.kubeconfig("volcano")]).start()


@pytest.fixture(scope="module")
def cluster():
    with Everything() as own:
        yield own


def by_kubectl(cluster, namespace, path):
    """Return (why kubectl or the server refuses a file, or "", and the objects that kubectl makes
    of it, or None)."""
    args = ("create", "-n", namespace, "-f", str(path))
    p = cluster.kubectl(*args, "--dry-run=server", check=False)
    if p.returncode:
        return p.stderr, None
    return "", cluster.kubectl(*args, "--dry-run=client", "--validate=false", "-o", "json").stdout


def by_kxfs(kx, text):
    """Return (why kxfs refuses the text, or "", and the objects that it makes, or None)."""
    if err_of(kx.write, "dryrun/job.yaml", text):
        return kx.read("dryrun/job.yaml.error"), None
    return "", kx.read("dryrun/job.yaml")


def plain(manifest):
    """Return MANIFEST without what kubectl and kxfs add, and without nulls, which the server
    ignores."""
    def strip(value):
        if isinstance(value, dict):
            return {key: strip(one) for key, one in value.items() if one is not None}
        return [strip(one) for one in value] if isinstance(value, list) else value

    ret = strip(kubectl.without_additions(manifest))
    ret["metadata"].pop("namespace", None)
    if ret["metadata"].get("generateName"):
        ret["metadata"].pop("name", None)
    return ret


def compare(case, theirs, ours):
    """Return what is wrong, or ""."""
    if bool(ours[0]) != ("refused" in case):
        return f"kxfs: {ours[0] or 'taken'}"
    if bool(ours[0]) != bool(theirs[0]):
        return "" if case.get("differs") else f"kubectl: {theirs[0] or 'taken'}\nkxfs: {ours[0] or 'taken'}"
    if case.get("differs"):
        return "they do not differ"
    return "" if ours[0] else difference(plain(load(ours[1])), plain(json.loads(theirs[1])))


@pytest.mark.parametrize("kind", kubectl.KINDS)
def test_same(make_kx, cluster, namespace, limited, tmp_path, kind):
    kx = make_kx(source=namespace, env={"KUBECONFIG": str(limited)})
    path, wrong = tmp_path / "job.yaml", []
    for case in kubectl.CASES:
        if kind not in kubectl.kinds(case):
            continue
        text = kubectl.document(case, kind)
        path.write_bytes(text.encode())
        found = compare(case, by_kubectl(cluster, namespace, path), by_kxfs(kx, text))
        if found:
            wrong.append(f"{case['name']}: {found}")
    assert not wrong, "\n".join(wrong)
    assert kx.ls("jobs") == []


def test_all(make_kx, cluster, namespace, limited):
    """A job of each kind runs to its end. What one kind creates for another is not shown. Then one
    kind is uninstalled."""
    world = World(cluster, namespace)
    mount = make_kx("capture=all", source=namespace, env={"KUBECONFIG": str(limited)})
    jobs = {}
    for kind in KINDS:
        args = {"queue": "default"} if kind == "volcano" else None
        jobs[kind] = mount.submit(json.dumps({**json.loads(app(HOLD, args=args)), "scheduler": kind}), name=f"{kind}.yaml")
    pods = {kind: begun(job) for kind, job in jobs.items()}
    assert set(mount.ls("jobs")) == {job.id for job in jobs.values()}, "not the Job of the JobSet"
    assert len(cluster.client.items(world.path("jobs.batch"))) == 2
    head, *rows = mount.read("list").splitlines()
    at = head.split().index("KIND")
    assert {row.split()[0]: row.split()[at] for row in rows} == {job.id: kind for kind, job in jobs.items()}
    for kind, job in jobs.items():
        assert cluster.client.get(world.path(KINDS[kind], job.id)) and job.status()["kind"] == kind
        world.release(pods[kind])
        ended(job)
        assert job.read("main-0", "log") == "begin\nend\n"

    gone = jobs["jobset"]
    cluster.kubectl("delete", "customresourcedefinition", "jobsets.jobset.x-k8s.io")
    wait_for(lambda: [one["kind"] for one in yaml.safe_load(mount.read(".kxfs", "info"))["kinds"]] == [
        "volcano", "appwrapper", "job"], what="the kind to be gone")
    wait_for(lambda: set(mount.ls("jobs")) == {job.id for kind, job in jobs.items() if kind != "jobset"}, what="its job to go")
    assert mount.read("history", gone.id, "main-0", "log") == "begin\nend\n"
    log = cluster.audit_log.stat().st_size
    later = mount.submit(json.dumps({**json.loads(app(HOLD)), "scheduler": "job"}), name="later.yaml")
    world.release(begun(later))
    ended(later)
    assert not [entry for entry in cluster.audit(f"system:serviceaccount:{namespace}:kxfs", log)
                if "jobset" in entry["requestURI"]]
