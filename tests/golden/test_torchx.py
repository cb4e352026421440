# SPDX-License-Identifier: MIT
"""Compares kxfs with the real TorchX, which is installed from PyPI into a separate environment. The
inputs are its built-in components, and random AppDefs. kxfs makes manifests from our form and from
TorchX's, and TorchX 0.7.0 makes its own. KXFS_TORCHX_COUNT is the number of AppDefs;
KXFS_TORCHX_SEED repeats a run."""

import json
import math
import os
import random

import pytest
import torchx_env
from deviations import DEVIATIONS, ID, Case, norm, take_additions, take_job_id
from golden import HERE, KINDS, difference, make, rename, run
from test_components import CASES, VERSIONS, TorchX, check_dry_run, check_dump, record, recorded

COUNT = int(os.environ.get("KXFS_TORCHX_COUNT", "300"))
SEED = int(os.environ.get("KXFS_TORCHX_SEED", str(random.randrange(1 << 32))))
RESOURCES = json.loads((HERE / "named-resources-0.7.0.json").read_text())


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Return a function that starts each version at its first use."""
    made = {}

    def get(version):
        if version not in made:
            made[version] = TorchX(torchx_env.python(tmp_path_factory.mktemp("torchx"), version))
        return made[version]
    yield get
    for program in made.values():
        program.close()


# --- components ------------------------------------------------------------------------------

@pytest.mark.parametrize("version", VERSIONS)
def test_components(version, programs, tmp_path):
    """The real TorchX writes what was recorded. kxfs also reads what another version writes."""
    same = version != torchx_env.LATER or torchx_env.TRIED == torchx_env.LATER
    for name in [name for other, name in CASES if other == version]:
        made = record(programs(version), version, name)
        assert not same or made == recorded(version, name), name
        for kind in {"volcano", "mcad"} & set(made):
            check_dump(made[kind], kind, "json", tmp_path)
        if version == torchx_env.LATER:
            check_dry_run(made["volcano"], "volcano", tmp_path)


# --- random AppDefs ----------------------------------------------------------------------------

WORDS = ["train", "a", "My_App", "role-0", "worker", "Ünï", "x" * 30, "-lead", "tail-", "v1.2", "9lives", "a b",
         "--deep", "1-2-x", "K", "日本", "w_-_w"]
TEXTS = ["", "plain", "--lr=1e-3", "${app_id}", "$replica_id of ${rank0_env}", "$$HOME", "${unknown} $", "$$$app_id",
         "two\nlines\n", " edges ", "yes", "null", "0x10", "'\"\\", "日本 😀", "\t", "# no comment", "a: b", "${img_root}/x",
         "$base_img_root", "[FIELD_PATH]", "-", "[1, 2]", "{}", "*a", "1_000", "2024-01-01", "~"]
ENV_NAMES = ["A", "B", "PATH_X", "TORCHX_RANK0_HOST", "lower", "TORCHX_IMAGE", "K8S_VALUE", "Z9"]


def maybe(rng, odds, value):
    return value() if rng.random() < odds else None


def random_resource(rng):
    if rng.random() < 0.3:
        return rng.choice(sorted(RESOURCES) + ["NULL", "MISSING"])
    resource = {"cpu": rng.choice([0, 1, 2, 96, 0.5, 0.29, 1.001, 4.35, 0.05, -1]),
                "gpu": rng.choice([0, 0, 1, 8, -1]),
                "memMB": rng.choice([0, 512, 1024, 1025, 3000, 1500.9, 1132416, -1])}
    if rng.random() < 0.2:
        resource["devices"] = {name: rng.randrange(5) for name in rng.sample(
            ["vpc.amazonaws.com/efa", "rdma/hca", "cpu", "amd.com/gpu"], rng.randrange(1, 4))}
        if "cpu" in resource["devices"]:  # a limit below the request is refused (REF-values)
            resource["devices"]["cpu"] += math.ceil(max(resource["cpu"], 0))
    if rng.random() < 0.2:
        resource["capabilities"] = {"node.kubernetes.io/instance-type": rng.choice(["m5.2xlarge", "x"]), "other": "y"}
    return resource


def random_mounts(rng):
    mounts = []
    for i in range(rng.randrange(1, 4)):
        dst = f"/mnt/{i}"
        mounts.append(rng.choice([
            {"type": "bind", "src_path": "/data/${app_id}", "dst_path": dst},
            {"type": "bind", "src_path": "/data", "dst_path": dst, "read_only": True},
            {"type": "volume", "src": "claim", "dst_path": dst, "read_only": rng.random() < 0.5},
            {"type": "device", "src_path": "/dev/fuse", "dst_path": dst,
             "permissions": rng.choice(["r", "rw", "rwm", "m", ""])},
            f"type=bind,src=/host,dst={dst},readonly",
            f"type=volume,source=claim,target={dst}",
            f"type=device,src=/dev/kvm,dst={dst},perm=r",
        ]))
    return mounts


def random_overlay(rng):
    spec = {}
    if rng.random() < 0.5:
        spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
    if rng.random() < 0.5:
        spec["nodeSelector"] = {"zone": "${app_id}"}
    if rng.random() < 0.3:
        spec["volumes"] = [{"name": "more", "emptyDir": {}}]
    if rng.random() < 0.3:
        spec["__put__:volumes"] = []
    if rng.random() < 0.3:
        spec["__del__:nodeSelector"] = None
    if rng.random() < 0.3:
        spec["__join__:volumes:name"] = [{"name": "dshm", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "other"}]
    overlay = {"spec": spec}
    if rng.random() < 0.5:
        overlay["metadata"] = {"labels": {"team": "x", "torchx.pytorch.org/replica-id": "no"}, "annotations": {"a": "b"}}
    return rng.choice([overlay, {"V1Pod": overlay}])


def random_role(rng, number):
    role = {"name": rng.choice(WORDS) + str(number), "image": rng.choice(["img:1", "1.10", "ghcr.io/x@sha256:ff", "sha256:ab"]),
            "entrypoint": rng.choice(["python", "true", "/bin/${app_id}"])}
    fields = {
        "args": maybe(rng, 0.7, lambda: [rng.choice(TEXTS) for _ in range(rng.randrange(5))]),
        "env": maybe(rng, 0.6, lambda: {name: rng.choice(TEXTS + ["[FIELD_PATH]spec.nodeName"])
                                        for name in rng.sample(ENV_NAMES, rng.randrange(5))}),
        "num_replicas": maybe(rng, 0.6, lambda: rng.randrange(1, 5)),
        "max_retries": maybe(rng, 0.5, lambda: rng.randrange(4)),
        "retry_policy": maybe(rng, 0.4, lambda: rng.choice(["APPLICATION", "REPLICA", "HOT_SPARE"])),
        "resource": maybe(rng, 0.8, lambda: random_resource(rng)),
        "port_map": maybe(rng, 0.4, lambda: {f"p{i}": rng.randrange(1, 65536) for i in range(rng.randrange(3))}),
        "mounts": maybe(rng, 0.4, lambda: random_mounts(rng)),
        "metadata": maybe(rng, 0.15, lambda: {"kubernetes": random_overlay(rng)}),
    }
    role.update({key: value for key, value in fields.items() if value is not None})
    if rng.random() < 0.2:
        role["min_replicas"] = rng.randrange(role.get("num_replicas", 1) + 1)
    return role


def random_options(rng, kind):
    options = {"image_repo": "repo.example/x"}
    more = {"volcano": {"service_account": "sa", "priority_class": "high", "reserved_millicpu": 250, "reserved_memmb": 0,
                        "efa_device_count": rng.randrange(3), "quiet": True},
            "mcad": {"service_account": "", "priority_class_name": "high", "image_secret": "s", "coscheduler_name": "c",
                     "network": "n", "priority": rng.randrange(-5, 5)}}[kind]
    options.update({key: value for key, value in more.items() if rng.random() < 0.3})
    if kind == "volcano":
        options["queue"] = rng.choice(["default", "", "q"])
    return options


def random_app(rng):
    name = rng.choice(WORDS) + rng.choice(["", "", "-x", "_Y", "z" * rng.randrange(30)])
    return {"name": name, "roles": [random_role(rng, i) for i in range(rng.choice([1, 1, 1, 2, 3]))]}


# --- expected results ----------------------------------------------------------------------------

def expect_refusal(app, kind):
    """Return whether TorchX, or kxfs according to docs/deviations.md, refuses something in APP."""
    name, total = norm(app["name"]), 0
    roles = [norm(role["name"]) for role in app["roles"]]
    if not name or not all(roles) or len(set(roles)) < len(roles):
        return True
    if any("[FIELD_PATH]" in role.get("env", {}).values() for role in app["roles"]):
        return True
    if kind == "mcad":
        return False
    if name[0].isdigit():
        return True
    for role, short in zip(app["roles"], roles):
        if role.get("max_retries", 0) > 0 and role.get("retry_policy") == "HOT_SPARE":
            return True
        total += role.get("num_replicas", 1)
        last = str(role.get("num_replicas", 1) - 1)
        if len(f"{name}-{'x' * 14}-{short}-{last}-{total - 1}") > 63:
            return True
    return False


def expected(theirs, case):
    for name in ("BUG-10", "BUG-9", "BUG-1", "BUG-13", "BUG-4", "BUG-6", "BUG-7", "BUG-23", "BUG-24",
                 "NEW-field-path", "NEW-reserved", "NEW-image"):
        if name == "BUG-13" and len(case.app["name"]) + 7 + len(case.roles) + 8 <= 63:
            continue
        theirs = DEVIATIONS[name](theirs, case)
    if "efa_device_count" in case.options:
        theirs = DEVIATIONS["NEW-efa"](theirs, case)
    return DEVIATIONS["NEW-overlay"](theirs, case)


def compare(torchx, app, kind, options, path):
    text = json.dumps(app, ensure_ascii=bool(len(app["roles"]) % 2))
    path.write_text(text)
    reply = torchx.ask(kind=kind, app=app, options={**options, "namespace": "ns"})
    if expect_refusal(app, kind):
        status, _, errors = run(kind, path, "ns", options)
        assert status == 1 and errors.startswith(str(path) + ":1:"), errors
        return "refused"
    assert "job" in reply, reply
    theirs, ours = reply["job"], make(kind, path, "ns", options)
    take_additions(ours, text)
    case = Case(kind, app, options, "ns", theirs["metadata"]["name"])
    ours = rename(ours, ours["metadata"]["name"], ID)
    take_job_id(ours, case)
    found = difference(ours, expected(rename(theirs, case.torchx_id, ID), case))
    assert not found
    path.write_text(json.dumps(reply["dump"]))  # TorchX's own form of the AppDef
    dumped = make(kind, path, "ns", options)
    take_additions(dumped, json.dumps(reply["dump"]))
    dumped = rename(dumped, dumped["metadata"]["name"], ID)
    take_job_id(dumped, case)
    found = difference(dumped, ours)
    assert not found, f"of TorchX's dump: {found}"
    return "made"


def test_random_apps(programs, tmp_path):
    torchx = programs(torchx_env.FIRST)
    rng = random.Random(SEED)
    seen = {"made": 0, "refused": 0}
    for i in range(COUNT):
        app, kind = random_app(rng), KINDS[i % 2]
        options = random_options(rng, kind)
        try:
            seen[compare(torchx, app, kind, options, tmp_path / "app.json")] += 1
        except AssertionError as error:
            raise AssertionError(f"KXFS_TORCHX_SEED={SEED}, number {i}, {kind} {options}:\n{json.dumps(app)}\n{error}") from error
    print(f"seed {SEED}: {seen}")
    assert seen["made"] > COUNT / 3 and (COUNT < 100 or seen["refused"] > 0)
