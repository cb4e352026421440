# SPDX-License-Identifier: MIT
"""JobSets: the pods of each role are those of Volcano's first task of the role, except for the
necessary differences. test_golden.py compares those with TorchX. The rest must be as recorded in
jobset.yaml. `python3 test_jobset.py` records changes; read the diff before committing it."""

import copy
import json

import pytest
import yaml
from golden import NAME, NAMES, Input, cases_of, difference, load, make_text, record, run

CASES = [name for name in NAMES if "volcano" in Input(name).kinds()]
GOLDEN = cases_of("jobset")
RECORDED = ["001-minimal", "004-replicas", "005-multi-role", "050-macros", "053-rank0-dashed-role", "060-retry-application",
            "010-gpu", "032-mount-device", "067-min-replicas", "090-name-upper-underscore"]
INDEX = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {
    "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}}
# JobSets do not have these options.
VOLCANOS = ("priority", "reserved_millicpu", "reserved_memmb", "efa_device_count", "quiet", "validate_spec")


def options_of(source):
    options, namespace = source.options("volcano")
    return {**{key: value for key, value in options.items() if key not in VOLCANOS}, "no_annotations": True}, namespace


def make(name):
    """Like golden.make_text."""
    source = Input(name)
    options, namespace = options_of(source)
    return make_text("jobset", source, namespace, options)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded(name):
    status, text, errors = make(name)
    assert (status, errors) == (0, "")
    assert text == GOLDEN[name]


def expected_pod(task, role_name, rank0):
    """Return the pod of Volcano's TASK, replica 0 of its role, as it is in a JobSet's role."""
    pod = copy.deepcopy(task["template"])
    labels = pod["metadata"]["labels"]
    del labels["torchx.pytorch.org/replica-id"]
    container = pod["spec"]["containers"][0]
    if container["name"] == task["name"]:
        container["name"] = role_name
    env = [variable for variable in container["env"] if variable["name"] not in ("TORCHX_RANK0_HOST", "TORCHX_JOB_ID")]
    container["env"] = [INDEX, *env, {"name": "TORCHX_RANK0_HOST", "value": rank0}]
    return pod


@pytest.mark.parametrize("name", CASES)
def test_pods(name):
    """For documents without macros, the pods are the same, once per role instead of once per
    replica."""
    source = Input(name)
    options, namespace = options_of(source)
    volcano_options = {"queue": "default", **{k: v for k, v in options.items() if k != "image_secret"}}
    before, volcano, _ = run("volcano", source.path, namespace, volcano_options)
    status, text, errors = make(name)
    if status:
        assert before or "pods of role" in errors or "JobSet can't do" in errors, errors
        return
    assert before == 0
    if "${" in source.text:
        return
    volcano_id = load(volcano)["metadata"]["name"]
    tasks = load(volcano.replace(volcano_id, NAME))["spec"]["tasks"]
    jobs = load(text)["spec"]["replicatedJobs"]
    rank0 = f"{NAME}-{jobs[0]['name']}-0-0.{NAME}"
    for job in jobs:
        mine = [task for task in tasks if task["name"].rsplit("-", 1)[0] == job["name"]]
        spec = job["template"]["spec"]
        assert spec["completions"] == spec["parallelism"] == len(mine) and job["replicas"] == 1
        pod = copy.deepcopy(spec["template"])
        container = pod["spec"]["containers"][0]
        container["env"] = [variable for variable in container["env"] if variable["name"] != "TORCHX_JOB_ID"]
        container["env"].sort(key=json.dumps)
        wanted = expected_pod(mine[0], job["name"], rank0)
        wanted["spec"]["containers"][0]["env"].sort(key=json.dumps)
        assert not difference(pod, wanted)


def test_ten_thousand_replicas(tmp_path):
    """10000 replicas fit, because the object does not grow with them."""
    path = tmp_path / "app.yaml"
    sizes = []
    for replicas in (1, 10000):
        path.write_text(f"name: a\nroles:\n- {{name: r, image: i, entrypoint: e, num_replicas: {replicas}}}\n")
        status, out, errors = run("jobset", path)
        assert (status, errors) == (0, "")
        # the names differ in length
        sizes.append(len(out.replace(load(out)["metadata"]["name"], "a")))
    assert sizes[1] - sizes[0] < 20


@pytest.mark.parametrize("fields, limits, restarts", [
    ("max_retries: 2", {"backoffLimit": 0}, 2),
    ("max_retries: 2, retry_policy: APPLICATION", {"backoffLimit": 0}, 2),
    ("max_retries: 2, retry_policy: REPLICA", {"backoffLimitPerIndex": 2, "maxFailedIndexes": 0}, 0),
    ("retry_policy: REPLICA", {"backoffLimit": 0}, 0),
    ("num_replicas: 2", {"backoffLimit": 0}, 0)])
def test_retries(tmp_path, fields, limits, restarts):
    path = tmp_path / "app.yaml"
    path.write_text(f"name: a\nroles:\n- {{name: r, image: i, entrypoint: e, {fields}}}\n")
    job = load(run("jobset", path)[1])["spec"]
    spec = job["replicatedJobs"][0]["template"]["spec"]
    assert {key: value for key, value in spec.items() if "ack" in key or "maxFailed" in key} == limits
    assert job["failurePolicy"] == {"maxRestarts": restarts}


def test_role_policy_is_refused(tmp_path):
    path = tmp_path / "app.yaml"
    path.write_text("name: a\nroles:\n- {name: r, image: i, entrypoint: e, max_retries: 1, retry_policy: ROLE}\n")
    assert "JobSet does not support ROLE: use APPLICATION or REPLICA, or max_retries: 0" in run("jobset", path)[2]


def test_overlay_of_a_replica(tmp_path):
    """All pods of a role have the same template. An overlay that would make them differ is refused,
    not ignored."""
    path = tmp_path / "app.yaml"
    text = """name: a
roles:
- {name: r, image: i, entrypoint: e, metadata: {kubernetes: {spec: {hostname: "x-MACRO"}}}}
"""
    path.write_text(text.replace("MACRO", "${replica_id}"))
    assert "JobSet creates all pods of a role from one template, so ${replica_id} is not allowed in an overlay" in run("jobset", path)[2]
    path.write_text(text.replace("MACRO", "${img_root}y"))
    job = load(run("jobset", path)[1])
    assert job["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["hostname"] == "x-y"


def test_labels_of_kueue():
    source = Input("001-minimal")
    job = yaml.safe_load(run("jobset", source.path, "ns", {"queue": "team", "priority_class": "high"})[1])
    labels = job["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "team" and labels["kueue.x-k8s.io/priority-class"] == "high"


if __name__ == "__main__":
    record("jobset", RECORDED, make)
