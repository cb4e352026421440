# SPDX-License-Identifier: MIT
"""The meaning of files that people pass to kubectl: kubectl.yaml.

CASES are its files, each with the kinds of jobs to which it applies. document(case, kind) is the
text."""

import json
import pathlib
import re

import pytest
import yaml
from golden import difference, load, run

IMAGE = "docker.io/library/busybox:1.35"
NAME = "one"
CONTAINERS = [{"name": "main", "image": IMAGE, "command": ["true"]}]


def pod(spec):
    return {"spec": {"restartPolicy": "Never", "containers": CONTAINERS, **spec}}


def batch(spec):
    return {"backoffLimit": 0, "template": pod(spec)}


KINDS = {
    "job": ("batch/v1", "Job", batch),
    "volcano": ("batch.volcano.sh/v1alpha1", "Job", lambda spec: {
        "minAvailable": 1, "schedulerName": "volcano", "queue": "default", "tasks": [{"name": "main", "replicas": 1, "template": pod(spec)}]}),
    "jobset": ("jobset.x-k8s.io/v1alpha2", "JobSet", lambda spec: {"replicatedJobs": [{"name": "main", "template": {"spec": batch(spec)}}]}),
    "appwrapper": ("workload.codeflare.dev/v1beta2", "AppWrapper", lambda spec: {"components": [{"template": {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, **pod(spec)}}]}),
}
CASES = yaml.safe_load((pathlib.Path(__file__).parent / "kubectl.yaml").read_text())
HERE = "lines of the case"  # a field that the lines replace


def job(kind, spec):
    version, name, make = KINDS[kind]
    return {"apiVersion": version, "kind": name, "metadata": {"name": NAME}, "spec": make(spec)}


def kinds(case):
    return case.get("kinds", list(KINDS))


def document(case, kind):
    """Return the file's text."""
    if "file" in case:
        one = job(kind, {})
        forms = {"JOB": yaml.dump(one), "FLOW": yaml.dump(one, default_flow_style=True, width=10000).strip(), "JSON": json.dumps(one)}
        return re.sub("JOB|FLOW|JSON", lambda match: forms[match[0]], case["file"])
    if "metadata" in case:
        return yaml.dump(job(kind, {})).replace(f"metadata:\n  name: {NAME}\nspec", f"metadata: {case['metadata']}\nspec")
    text = yaml.dump(job(kind, {HERE: None}))
    return re.sub(rf"^( *){HERE}: null\n", lambda match: "".join(f"{match[1]}{line}\n" for line in case["pod"].splitlines()),
                  text, flags=re.M)


def expected(case, kind):
    """Return the object that kxfs makes, without its additions."""
    if "pod" in case:
        return job(kind, case["value"])
    return {**job(kind, {}), **({"metadata": case["value"]} if "metadata" in case else {})}


def words(case, kind):
    """Return kxfs's error for a file that it refuses."""
    return case["refused"].replace("KIND", KINDS[kind][1]).replace("NAME", NAME)


def without_additions(value):
    """Return VALUE without what kxfs adds to a manifest."""
    if isinstance(value, list):
        return [without_additions(one) for one in value]
    if not isinstance(value, dict):
        return value
    ret = {key: without_additions(one) for key, one in value.items() if not key.startswith("kxfs/")}
    return {key: one for key, one in ret.items() if one or not value[key] or key not in ("labels", "annotations", "metadata")}


def same_name(manifest):
    """Return MANIFEST with NAME in place of the random suffix of its generateName."""
    metadata = manifest["metadata"]
    if metadata.get("generateName"):
        metadata["name"] = re.sub(r"-[bcdfghjklmnpqrstvwxz0-79]{8,14}$", "-NAME", metadata["name"])
    return manifest


# --- Manifests --------------------------------------------------------------------------------
# The meaning of files that people pass to kubectl: kubectl.yaml.

MANIFESTS = [(case, kind) for case in CASES for kind in kinds(case)]
# an AppDef accepts only tags that match by YAML 1.2
STRICT = ("tag-int", "tag-bool", "tag-binary", "tag-unknown")
PODS = [case for case in CASES if "pod" in case]


@pytest.mark.parametrize("case,kind", MANIFESTS, ids=[f"{case['name']}-{kind}" for case, kind in MANIFESTS])
def test_manifest(case, kind, tmp_path):
    path = tmp_path / "job.yaml"
    path.write_bytes(document(case, kind).encode())
    for backend in (kind, None):
        status, out, errors = run(backend, path)
        if case.get("refused"):
            assert status == 1 and words(case, kind) in errors, errors
            continue
        assert (status, errors) == (0, "")
        made = same_name(without_additions(load(out)))
        assert not difference(made, expected(case, kind))


@pytest.mark.parametrize("case", PODS, ids=[case["name"] for case in PODS])
def test_overlay(case, tmp_path):
    """Lines in an overlay have the same meaning, with two exceptions: merge keys mean what they
    mean to TorchX, and nulls remove a field."""
    path = tmp_path / "app.yaml"
    lines = "".join(f"\n        {line}" for line in case["pod"].splitlines())
    path.write_text("name: a\nroles:\n- name: r\n  image: i\n  entrypoint: e\n"
                    f"  metadata:\n    kubernetes:\n      spec:{lines}\n")
    status, out, errors = run("job", path)
    if case.get("refused") or case["name"] in STRICT:
        assert status == 1 and (" tag " in errors if "!" in case["pod"] else case["refused"] in errors), errors
    else:
        assert (status, errors) == (0, "")
        spec = load(out)["spec"]["template"]["spec"]
        for key, value in case["value"].items():
            if value is None or case["name"] == "merge-after":
                continue
            found = spec[key][-1:] if key == "volumes" else spec[key]
            assert not difference(found, value)


def test_cases():
    """Each case has a unique name and an expected result."""
    assert len({case["name"] for case in CASES}) == len(CASES)
    for case in CASES:
        assert len({"pod", "metadata", "file"} & set(case)) == 1, case
        assert case.get("refused") or "value" in case or "file" in case, case
