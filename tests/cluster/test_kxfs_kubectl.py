# SPDX-License-Identifier: MIT
"""What `kubectl create` takes, kxfs takes, and as the same object; what it refuses, kxfs refuses: the files of
tests/golden/kubectl.yaml, on a cluster that serves all kinds."""

import json
import sys

import pytest
from cluster import HERE
from harness import err_of
from test_kxfs_all import Everything

sys.path[1:1] = [str(HERE.parent / "golden")]

import kubectl  # noqa: E402
from golden import difference, load  # noqa: E402


@pytest.fixture(scope="module")
def cluster():
    with Everything() as own:
        yield own


def by_kubectl(cluster, namespace, path):
    """The objects that kubectl makes of a file, as text; or why it, or the server, refuses that."""
    args = ("create", "-n", namespace, "-f", str(path))
    p = cluster.kubectl(*args, "--dry-run=server", check=False)
    if p.returncode:
        return p.stderr, None
    return "", cluster.kubectl(*args, "--dry-run=client", "--validate=false", "-o", "json").stdout


def by_kxfs(kx, text):
    """The same of kxfs."""
    if err_of(kx.write, "dryrun/job.yaml", text):
        return kx.read("dryrun/job.yaml.error"), None
    return "", kx.read("dryrun/job.yaml")


def plain(manifest):
    """MANIFEST without what kubectl and kxfs add, and without nulls, which mean nothing to the server."""
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
    """What is wrong; "": nothing is."""
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
