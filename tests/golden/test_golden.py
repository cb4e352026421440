# SPDX-License-Identifier: MIT
"""kxfs's manifests are those of TorchX 0.7.0 (recorded in inputs.yaml, volcano.yaml and mcad.yaml),
except for the differences that deviations.yaml names. Each of these differences really exists."""

import copy
import json
import re
import tempfile

import pytest
import yaml
from deviations import DEVIATIONS, ID, Case, clean, container, norm, take_additions, take_job_id
from golden import HERE, KINDS, NAMES, PINNED, Input, difference, load, make, rename, run, split_id, values_of

TABLE = yaml.safe_load((HERE / "deviations.yaml").read_text())
DOCUMENT = HERE.parents[1] / "docs/deviations.md"
NOT_BLOCK = ("212-yaml-is-json", "215-yaml-two-docs")  # nothing can be appended to these
BOTH = [(name, kind) for name in NAMES for kind in Input(name).kinds()]


def recorded(name, kind):
    value = values_of(kind).get(name)
    return copy.deepcopy(value) if value and "error" not in value else None


def listed(table, name, kind):
    entry = TABLE[table].get(name)
    return entry if entry and kind in entry.get("kinds", KINDS) else None


def torchx_base(name):
    for n in range(len(PINNED), 2, -1):
        if name.endswith("-" + PINNED[:n]):
            return name[:-n - 1]
    raise AssertionError(name)


def mended_base(base, case, ids):
    """Return the name without its suffix, after fixing the bugs IDS."""
    if "BUG-13" in ids:
        base = clean(case.app["name"])[:max(63 - 7 - len(case.roles), 24) - 8].rstrip("-")
    if "BUG-9" in ids:
        base = norm(base) if case.kind == "volcano" else clean(base)
    return base


def check_equal(name, kind):
    source = Input(name)
    options, namespace = source.options(kind)
    ids = TABLE["cases"].get(name, {}).get(kind, [])
    theirs = recorded(name, kind)
    ours = make(kind, source.path, namespace, options)
    case = Case(kind, yaml.safe_load(source.text), options, namespace, theirs["metadata"]["name"])

    our_base, suffix = split_id(ours["metadata"]["name"])
    their_base = torchx_base(case.torchx_id)
    assert our_base == mended_base(their_base, case, ids)
    assert len(suffix) >= 8 and len(ours["metadata"]["name"]) <= 63

    ours = rename(ours, ours["metadata"]["name"], ID)
    theirs = rename(theirs, case.torchx_id, ID)
    take_additions(ours, source.text)
    take_job_id(ours, case)
    for _, _, pod, _ in case.pods(theirs):
        ran = [v for v in container(pod)["env"] if v["name"] == "TORCHX_JOB_ID"]
        assert bool(ran) == source.runner
        container(pod)["env"] = [v for v in container(pod)["env"] if v not in ran]

    if kind == "mcad":
        theirs = DEVIATIONS["BUG-10"](theirs, case)
    theirs = DEVIATIONS["NEW-image"](theirs, case)
    for wanted in ids:
        before, base = copy.deepcopy(theirs), mended_base(their_base, case, [wanted])
        theirs = DEVIATIONS[wanted](theirs, case)
        assert theirs != before or base != their_base, f"{wanted} is listed, but changes nothing"
    assert not difference(ours, theirs)


def check_refused(name, kind, entry):
    source = Input(name)
    options, namespace = source.options(kind)
    if name in NOT_BLOCK or not options:
        status, out, errors = run(kind, "app.yaml", namespace, options, cwd=source.path.parent)
    else:  # in the document, because -o has no types
        status, out, errors = run_with_args(source, options, kind, namespace)
    assert status == 1 and out == ""
    place = f"app.yaml:{entry['at']}: " if entry["at"] else "app.yaml: "
    path = f"{entry['path']}: " if entry["path"] else ""
    assert errors.startswith(place + path), errors


def run_with_args(source, options, kind, namespace):
    with tempfile.TemporaryDirectory() as scratch:
        with open(f"{scratch}/app.yaml", "w", encoding="utf-8", newline="") as f:
            f.write(f"{source.text}scheduler_args: {json.dumps(options)}\n")
        return run(kind, "app.yaml", namespace, cwd=scratch)


def check_accepted(name, kind, entry, tmp_path):
    source = Input(name)
    options, namespace = source.options(kind)
    one, other = entry.get("like", ("", ""))
    assert one in source.text
    (tmp_path / "like.yaml").write_text(source.text.replace(one, other) if one else source.text)
    results = []
    for path, like in (source.path, {}), (tmp_path / "like.yaml", entry.get("options", {})):
        (tmp_path / "app.yaml").write_text(f"{path.read_text()}scheduler_args: {json.dumps({**options, **like})}\n")
        job = make(kind, tmp_path / "app.yaml", namespace)
        del job["metadata"]["annotations"]
        results.append(rename(job, job["metadata"]["name"], ID))
    assert results[0] == results[1]


@pytest.mark.parametrize("name,kind", BOTH, ids=[f"{n}-{k}" for n, k in BOTH])
def test_case(name, kind, tmp_path):
    theirs = recorded(name, kind)
    refused, accepted = listed("refused", name, kind), listed("accepted", name, kind)
    if theirs is None and accepted:
        check_accepted(name, kind, accepted, tmp_path)
    elif theirs is None:
        entry = listed("errors", name, kind)
        assert entry, "TorchX refuses this: list it in errors or accepted"
        check_refused(name, kind, entry)
    elif refused:
        check_refused(name, kind, refused)
    else:
        check_equal(name, kind)


def test_table_names_cases():
    """Everything in the table is a case, and no case occurs twice."""
    for name, kinds in TABLE["cases"].items():
        for kind in kinds:
            assert recorded(name, kind), f"{name} {kind}"
            assert not listed("refused", name, kind)
    for table in ("refused", "errors", "accepted"):
        for name, entry in TABLE[table].items():
            for kind in entry["kinds"]:
                assert (name, kind) in BOTH
                assert (recorded(name, kind) is not None) == (table == "refused"), f"{name} {kind}"
                assert not (table == "accepted" and listed("errors", name, kind))


def test_documentation():
    """docs/deviations.md explains each difference that is used. It marks those without a case with
    a star."""
    used = {"ADD-annotations", "ADD-label", "BUG-5", "BUG-10", "NEW-image"}
    for kinds in TABLE["cases"].values():
        used.update(*kinds.values())
    for table in ("refused", "accepted"):
        used.update(entry["id"] for entry in TABLE[table].values())
    text = DOCUMENT.read_text()
    explained = re.findall(r"^### ([A-Z]+-[a-z0-9-]+)(?: \*)?$", text, re.M)
    assert len(explained) == len(set(explained))
    assert used <= set(explained), used - set(explained)
    unseen = set(re.findall(r"^### ([A-Z]+-[a-z0-9-]+) \*$", text, re.M))
    assert set(explained) - used == unseen


REFUSED = {  # fields of the role, and a word of docs/deviations.md
    "num_replicas: 10001": "10000",
    "resource: {cpu: 1000000000001, memMB: 1, gpu: 0}": "1000000000000",
    "resource: {cpu: 1, memMB: 1000000000001, gpu: 0}": "memMB",
    "resource: {cpu: 1, memMB: 1, gpu: 2147483648}": "2147483647",
    "max_retries: 2147483648": "max_retries",
    "resource: {cpu: 1, memMB: 1, gpu: 0, devices: {d.io/x: 2147483648}}": "device",
    'resource: {cpu: 1, memMB: 1, gpu: 0, devices: {d.io/x: "4"}}': '"4"',
    "min_replicas: -1": "min_replicas",
    'base_image: "a\x85b"': "U+0085",
    'base_image: "a\u2028b"': "U+2028",
    'base_image: "a\u2029b"': "U+2029",
    "metadata: {kubernetes: {V1Pod: {}, V1Service: {}}}": "V1Pod",
}


@pytest.mark.parametrize("fields", REFUSED)
def test_limits(fields, tmp_path):
    """Values beyond the limits of REF-limits are refused, at the right position."""
    [section] = re.findall(r"^### REF-limits \*$(.*?)^### ", DOCUMENT.read_text(), re.M | re.S)
    assert REFUSED[fields] in section
    text = "name: app\nroles:\n- {name: main, image: i, entrypoint: e, %s}\n"
    path = tmp_path / "app.yaml"
    path.write_text(text % fields, encoding="utf-8")
    status, _, errors = run("volcano", path, "ns", {"queue": "q"})
    assert status == 1 and errors.startswith(f"{path}:3:"), errors


def test_names_without_control_characters(tmp_path):
    path = tmp_path / "app.yaml"
    path.write_text('name: "a\\u0001b"\nroles:\n- {name: "c\\nd", image: i, entrypoint: e}\n')
    errors = run("volcano", path, "ns", {"queue": "q"})[2]
    assert errors.count("must not contain control characters or line breaks") == 2, errors


@pytest.mark.parametrize("name,kind", BOTH, ids=[f"{n}-{k}" for n, k in BOTH])
def test_scheduler_args(name, kind):
    """Options in the document have the same effect as on the command line."""
    source = Input(name)
    options, namespace = source.options(kind)
    if name in NOT_BLOCK or None in options.values():
        return
    theirs = run_with_args(source, options, kind, namespace)
    ours = run(kind, source.path, namespace, options)
    if listed("errors", name, kind) or ours[0]:
        assert theirs[0] == 1
        return
    jobs = [load(theirs[1]), load(ours[1])]
    for job in jobs:
        del job["metadata"]["annotations"]
    assert rename(jobs[0], jobs[0]["metadata"]["name"], ID) == rename(jobs[1], jobs[1]["metadata"]["name"], ID)


# --- Time limits ------------------------------------------------------------------------------
# time_limit and ttl: everything that they change in the manifest of each kind.

INPUT = Input("005-multi-role").path


def make_limited(kind, options):
    status, out, errors = run(kind, INPUT, "default", {"no_annotations": True, **options})
    assert status == 0, errors
    tree = load(out)
    name = tree["metadata"]["name"]
    return load(out.replace(name, "the-job"))


def pods(kind, tree):
    """Return the specs of all pods or pod templates in the object."""
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
def test_limits_of_time(kind, queue):
    base = {"queue": queue} if queue else {}
    has_ttl = kind in ("volcano", "jobset")
    wanted = copy.deepcopy(make_limited(kind, base))
    for spec in pods(kind, wanted):
        spec["activeDeadlineSeconds"] = 14400
    if has_ttl:
        wanted["spec"]["ttlSecondsAfterFinished"] = 86400
    assert len(pods(kind, wanted)) > 1
    assert make_limited(kind, {**base, "time_limit": "4h", **({"ttl": "1d"} if has_ttl else {})}) == wanted


@pytest.mark.parametrize("queue", [None, "q"])
def test_limits_of_a_job(tmp_path, queue):
    """The limit is set on each pod, as for the other kinds. A Job's own deadline would apply to all
    replicas of an array together."""
    path = tmp_path / "app.yaml"
    path.write_text("name: a\nroles: [{name: r, image: i, entrypoint: e, num_replicas: 9}]\n")
    base = {"no_annotations": True, "parallelism": 3, **({"queue": queue} if queue else {})}
    made = [load(run("job", path, "default", {**base, **more})[1]) for more in ({}, {"time_limit": "4h", "ttl": "1d"})]
    wanted, limited = (load(json.dumps(tree).replace(tree["metadata"]["name"], "the-job")) for tree in made)
    wanted["spec"]["template"]["spec"]["activeDeadlineSeconds"] = 14400
    wanted["spec"]["ttlSecondsAfterFinished"] = 86400
    assert limited == wanted


@pytest.mark.parametrize("kind", ["mcad", "appwrapper"])
def test_no_ttl(tmp_path, kind):
    path = tmp_path / "app.yaml"
    path.write_text("name: a\nroles: [{name: r, image: i, entrypoint: e}]\nscheduler_args: {ttl: 1d}\n")
    status, out, errors = run(kind, path)
    assert status == 1 and out == ""
    assert errors == (f"{path}:3:23: scheduler_args.ttl: no controller removes finished AppWrappers: leave ttl out, "
                      "or use Volcano or JobSet\n")
