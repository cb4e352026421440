# SPDX-License-Identifier: MIT
"""time_limit and ttl: all that they change in the manifest of each kind."""

import copy
import json

import pytest
from golden import Input, load, run

INPUT = Input("005-multi-role").path
KUEUES = "kueue.x-k8s.io/max-exec-time-seconds"


def make(kind, options):
    status, out, errors = run(kind, INPUT, "default", {"no_annotations": True, **options})
    assert status == 0, errors
    tree = load(out)
    name = tree["metadata"]["name"]
    return load(out.replace(name, "the-job"))


def pods(kind, tree):
    """The specs of all pods or their templates in the object."""
    spec = tree["spec"]
    if kind == "volcano":
        return [task["template"]["spec"] for task in spec["tasks"]]
    if kind == "jobset":
        return [job["template"]["spec"]["template"]["spec"] for job in spec["replicatedJobs"]]
    items = [item["generictemplate"] for item in spec["resources"]["GenericItems"]] if kind == "mcad" else [
        item["template"] for item in spec["components"]]
    return [item["spec"] for item in items if item["kind"] == "Pod"]


@pytest.mark.parametrize("kind, queue", [("volcano", "q"), ("mcad", None), ("appwrapper", None), ("appwrapper", "q"),
                                         ("jobset", None), ("jobset", "q")])
def test_limits(kind, queue):
    base = {"queue": queue} if queue else {}
    has_ttl = kind in ("volcano", "jobset")
    wanted = copy.deepcopy(make(kind, base))
    for spec in pods(kind, wanted):
        spec["activeDeadlineSeconds"] = 14400
    if has_ttl:
        wanted["spec"]["ttlSecondsAfterFinished"] = 86400
    if queue and kind != "volcano":
        wanted["metadata"]["labels"][KUEUES] = str(14400 + 300)
    assert len(pods(kind, wanted)) > 1
    assert make(kind, {**base, "time_limit": "4h", **({"ttl": "1d"} if has_ttl else {})}) == wanted


@pytest.mark.parametrize("queue", [None, "q"])
def test_limits_of_a_job(tmp_path, queue):
    """Of each pod, as in the other kinds: a Job's own deadline would be one for all replicas of an array."""
    path = tmp_path / "app.yaml"
    path.write_text("name: a\nroles: [{name: r, image: i, entrypoint: e, num_replicas: 9}]\n")
    base = {"no_annotations": True, "parallelism": 3, **({"queue": queue} if queue else {})}
    made = [load(run("job", path, "default", {**base, **more})[1]) for more in ({}, {"time_limit": "4h", "ttl": "1d"})]
    wanted, limited = (load(json.dumps(tree).replace(tree["metadata"]["name"], "the-job")) for tree in made)
    wanted["spec"]["template"]["spec"]["activeDeadlineSeconds"] = 14400
    wanted["spec"]["ttlSecondsAfterFinished"] = 86400
    if queue:
        wanted["metadata"]["labels"][KUEUES] = limited["metadata"]["labels"][KUEUES]
    assert limited == wanted


def test_kueue_counts_all_attempts(tmp_path):
    path = tmp_path / "app.yaml"
    path.write_text("name: a\nroles: [{name: r, image: i, entrypoint: e, max_retries: 2}]\n"
                    "scheduler_args: {queue: q, time_limit: 10s}\n")
    status, out, errors = run("jobset", path)
    assert status == 0, errors
    assert load(out)["metadata"]["labels"][KUEUES] == str(3 * (10 + 300))


@pytest.mark.parametrize("kind", ["mcad", "appwrapper"])
def test_no_ttl(tmp_path, kind):
    path = tmp_path / "app.yaml"
    path.write_text("name: a\nroles: [{name: r, image: i, entrypoint: e}]\nscheduler_args: {ttl: 1d}\n")
    status, out, errors = run(kind, path)
    assert status == 1 and out == ""
    assert errors == (f"{path}:3:23: scheduler_args.ttl: no controller of AppWrappers removes one by itself when it has "
                      "ended: leave ttl out, or use Volcano or JobSet\n")
