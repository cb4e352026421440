# SPDX-License-Identifier: MIT
"""What TorchX writes of its built-in components is read: kxfs makes of each AppDef the object that TorchX made of it
(recorded in torchx-VERSION.json), but for what docs/deviations.md lists."""

import json

import pytest
import torchx_env
import yaml
from components import CASES, recorded
from deviations import DEVIATIONS, ID, Case, container, take_additions, take_job_id
from golden import difference, load, make, rename, run

VERSION_LABEL = "torchx.pytorch.org/version"
ALWAYS = ("BUG-10", "BUG-1", "BUG-4", "BUG-23", "BUG-24", "NEW-image")
MADE = [(version, name, kind) for version, name in CASES for kind in ("volcano", "mcad") if kind in recorded(version, name)]


def expected(made, case):
    """The recorded object with what kxfs makes differently."""
    job = rename(made["job"], case.torchx_id, ID)
    for _, _, pod, _ in case.pods(job):
        env = container(pod)["env"]
        env[:] = [variable for variable in env if variable["name"] != "TORCHX_JOB_ID"]
        labels = pod["metadata"]["labels"]
        labels[VERSION_LABEL] = torchx_env.FIRST  # the version that manifests equal
    for name in ALWAYS:
        job = DEVIATIONS[name](job, case)
    return job


def check(made, case, text, job):
    take_additions(job, text)
    job = rename(job, job["metadata"]["name"], ID)
    take_job_id(job, case)
    assert not difference(job, expected(made, case))


def case_of(made, kind):
    dump = made.get("dump") or made["dry_run"]["app"]
    app = {**dump, "roles": [{key: value for key, value in role.items() if value is not None} for role in dump["roles"]]}
    return Case(kind, app, made["options"], "default", made["job"]["metadata"]["name"])


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("version,name,kind", MADE, ids=["-".join(case) for case in MADE])
def test_dump(version, name, kind, form, tmp_path):
    check_dump(recorded(version, name)[kind], kind, form, tmp_path)


def check_dump(made, kind, form, tmp_path):
    """dataclasses.asdict(AppDef)"""
    dump = made.get("dump") or made["dry_run"]["app"]
    text = json.dumps(dump) if form == "json" else yaml.safe_dump(dump, sort_keys=False)
    path = tmp_path / f"dump.{form}"
    path.write_text(text)
    check(made, case_of(made, kind), text, make(kind, path, "default", made["options"]))


@pytest.mark.parametrize("source", ["volcano", "local", None])
@pytest.mark.parametrize("name", [name for version, name in CASES if version == torchx_env.LATER])
def test_dry_run(name, source, tmp_path):
    check_dry_run(recorded(torchx_env.LATER, name)["volcano"], source, tmp_path)


def check_dry_run(made, source, tmp_path):
    """The whole output of torchx run --dryrun --json, which says by itself what it is for."""
    text = json.dumps(made["dry_run"])
    path = tmp_path / "dry-run.json"
    path.write_text(text)
    status, out, errors = run(source, path, "default" if source == "volcano" else "")
    assert status == 0 and not errors, errors
    job = load(out)
    if len(text.encode()) > 32 * 1024:  # too long for an annotation
        job["metadata"]["annotations"].pop("kxfs/appdef-sha256")
        job["metadata"]["annotations"]["kxfs/appdef"] = text
    check(made, case_of(made, "volcano"), text, job)
