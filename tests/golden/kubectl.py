# SPDX-License-Identifier: MIT
"""The files of kubectl.yaml: CASES, each with the kinds of job for which it is a file, document(case, kind)."""

import json
import pathlib
import re

import yaml

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
HERE = "lines of the case"  # a field in whose place they come


def job(kind, spec):
    version, name, make = KINDS[kind]
    return {"apiVersion": version, "kind": name, "metadata": {"name": NAME}, "spec": make(spec)}


def kinds(case):
    return case.get("kinds", list(KINDS))


def document(case, kind):
    """The file, as text."""
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
    """The object that kxfs makes, without what it adds."""
    if "pod" in case:
        return job(kind, case["value"])
    return {**job(kind, {}), **({"metadata": case["value"]} if "metadata" in case else {})}


def words(case, kind):
    """What kxfs says of a file that it refuses."""
    return case["refused"].replace("KIND", KINDS[kind][1]).replace("NAME", NAME)


def without_additions(value):
    """VALUE, without what kxfs adds to a manifest."""
    if isinstance(value, list):
        return [without_additions(one) for one in value]
    if not isinstance(value, dict):
        return value
    ret = {key: without_additions(one) for key, one in value.items() if not key.startswith("kxfs/")}
    return {key: one for key, one in ret.items() if one or not value[key] or key not in ("labels", "annotations", "metadata")}


def same_name(manifest):
    """MANIFEST with NAME in place of a random suffix behind its generateName."""
    metadata = manifest["metadata"]
    if metadata.get("generateName"):
        metadata["name"] = re.sub(r"-[bcdfghjklmnpqrstvwxz0-79]{12,14}$", "-NAME", metadata["name"])
    return manifest
