# SPDX-License-Identifier: MIT
"""Batch Jobs: the pods of their single role are those of a JobSet, except for the host of rank 0.
test_jobset.py compares those with Volcano's. The rest must be as recorded in job.yaml. `python3
test_job.py` records changes; read the diff before committing it."""

import pytest
from golden import Input, cases_of, difference, load, make_text, record, run
from test_jobset import CASES, options_of

GOLDEN = cases_of("job")
RECORDED = ["001-minimal", "010-gpu", "032-mount-device"]
ROLE = "name: a\nroles:\n- {{name: r, image: i, entrypoint: e, {}}}\n"


def make(name, kind="job"):
    """Like golden.make_text."""
    source = Input(name)
    options, namespace = options_of(source)
    return make_text(kind, source, namespace, options)


def made(tmp_path, text, options=None):
    path = tmp_path / "app.yaml"
    path.write_text(text)
    return run("job", path, "ns", options or {})


@pytest.mark.parametrize("name", RECORDED)
def test_recorded(name):
    status, text, errors = make(name)
    assert (status, errors) == (0, "")
    assert text == GOLDEN[name]


@pytest.mark.parametrize("name", CASES)
def test_pods(name):
    status, text, errors = make(name)
    before, sets, _ = make(name, "jobset")
    if status or before:  # only a JobSet creates a Service, and needs a longer name
        assert before or "batch Job" in errors, errors
        return
    job, (other,) = load(text), load(sets)["spec"]["replicatedJobs"]
    pods = [job["spec"]["template"], other["template"]["spec"]["template"]]
    for pod in pods:
        for container in pod["spec"]["containers"]:
            container["env"] = [one for one in container.get("env", ())
                                if one["name"] not in ("TORCHX_JOB_ID", "TORCHX_RANK0_HOST")]
    assert not difference(*pods)


def test_ten_thousand_replicas(tmp_path):
    """10000 replicas fit, because the object does not grow with them."""
    status, out, errors = made(tmp_path, ROLE.format("num_replicas: 10000"), {"parallelism": "50"})
    assert (status, errors) == (0, "") and len(out) < 20000
    assert (load(out)["spec"]["completions"], load(out)["spec"]["parallelism"]) == (10000, 50)


def test_parallelism(tmp_path):
    """A mount's parallelism may be larger than the number of replicas."""
    assert load(made(tmp_path, ROLE.format("num_replicas: 3"), {"parallelism": "50"})[1])["spec"]["parallelism"] == 3
    assert "between 1 and" in made(tmp_path, ROLE.format("num_replicas: 3"), {"parallelism": "0"})[2]


@pytest.mark.parametrize("fields, limits", [
    ("max_retries: 2", {"backoffLimit": 2}),
    ("max_retries: 2, retry_policy: ROLE", {"backoffLimit": 2}),
    ("max_retries: 2, retry_policy: REPLICA", {"backoffLimitPerIndex": 2}),
    ("num_replicas: 4, max_retries: 2, retry_policy: REPLICA", {"backoffLimitPerIndex": 2}),
    ("num_replicas: 4, retry_policy: REPLICA", {"backoffLimitPerIndex": 0}),
    ("num_replicas: 4", {"backoffLimit": 0})])
def test_retries(tmp_path, fields, limits):
    spec = load(made(tmp_path, ROLE.format(fields))[1])["spec"]
    assert {key: value for key, value in spec.items() if "ackoff" in key} == limits
    assert spec["podReplacementPolicy"] == "Failed" and spec["template"]["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize("fields, words", [
    ("num_replicas: 2, max_retries: 1", "roles[0].max_retries: a batch Job can't restart all replicas, as APPLICATION"),
    ("num_replicas: 2, args: ['$${rank0_env}', '${rank0_env}']", "roles[0].args[1]: ${rank0_env} is not available: pods of a "
     "batch Job have no DNS names; if several replicas need it, use the scheduler jobset or volcano"),
    ("num_replicas: 2, env: {A: '$${${rank0_env}:=x}'}", "roles[0].env: ${rank0_env} is not available"),
    ("max_retries: 1, retry_policy: HOT_SPARE", "roles[0].retry_policy: ")])
def test_refused(tmp_path, fields, words):
    status, _, errors = made(tmp_path, "name: a\nroles:\n- {name: r, image: i, entrypoint: e, " + fields + "}\n")
    assert status == 1 and words in errors


def test_several_roles(tmp_path):
    text = "name: a\nroles:\n- {name: r, image: i, entrypoint: e}\n- {name: s, image: i, entrypoint: e}\n"
    assert "roles[1]: a batch Job has only one role; for several roles, use the scheduler jobset or volcano" in made(tmp_path, text)[2]


def test_rank0_alone(tmp_path):
    """A single replica is its own rank 0."""
    text = "name: a\nroles:\n- {name: r, image: i, entrypoint: e, args: ['${rank0_env}']}\n"
    container = load(made(tmp_path, text)[1])["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["e", "TORCHX_RANK0_HOST"]
    assert {"name": "TORCHX_RANK0_HOST", "value": "localhost"} in container["env"]


if __name__ == "__main__":
    record("job", RECORDED, make)
