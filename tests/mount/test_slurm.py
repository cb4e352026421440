# SPDX-License-Identifier: MIT
"""docs/slurm.md: each command of its tables runs on a mount; a cluster's kind and a local job accept each field."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import textwrap

import pytest
import yaml
from harness import ROOT, app, marked_pids, popen, removed, run, wait_for

PAGE = (ROOT / "docs/slurm.md").read_text()
# Tests must not send mail.
UNTESTED = re.compile(r"; mail .*")


def table(heading):
    """Return the right column of the first table after HEADING, each cell with the left one."""
    rows = re.search(re.escape(heading) + r"\n(?:.*\n)*?\| Slurm \| here \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE)[1]
    return [(left, re.fullmatch(r"`(.*)`", right)[1]) for left, right in re.findall(r"^\| (.*) \| (.*) \|$", rows, re.M)]


def readers(job):
    """Return how many blocking files processes of this test have open."""
    n = 0
    for pid in marked_pids():
        with contextlib.suppress(OSError):
            n += sum(f"/{job.id}/.live/" in os.readlink(fd) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    return n


def test_commands(kx):
    """Run them in order, with one job; waiting commands begin before the job ends, and end then."""
    for name in ("train.yaml", "next.yaml"):
        (kx.work / name).write_text(app("echo begin; exec sleep 10000", name=name[:-5]))
    held = {**json.loads(app("true", name="held")), "scheduler_args": {"hold": True}}
    (kx.work / "held.yaml").write_text(json.dumps(held))
    job, waiting = None, []

    def adapt(command):
        command = command.replace("/usr/share/doc/kxfs/examples", str(ROOT / "contrib/examples"))
        command = re.sub(r"\bcp (\w+\.yaml)", rf"cp {kx.work}/\1", UNTESTED.sub("", command))
        return f"cd {kx.mnt} && {{ {command.replace('ID', job.id if job else 'ID')}; }}"

    for slurm, command in table("## Commands"):
        if slurm == "`scancel ID`":
            job.until("RUNNING")
            rows = table("These wait for the end of the job:")
            waiting = [(line, popen(adapt(line), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)) for _, line in rows]
            assert len(waiting) == 5
            wait_for(lambda: readers(job) == len(waiting), what="the commands to read")
            removed(run(adapt(command), check=False), job.dir)
        else:
            run(adapt(command))
        if slurm == "`sbatch train.sh`":
            job = kx.job_of("train.yaml")
            job.until_logged("begin")
    for command, p in waiting:
        out = p.communicate(timeout=120)[0].decode()
        assert (p.returncode == 0) == ("grep" not in command), f"{command}: {out}"
    (left,) = kx.jobs()
    left.finish()
    assert job.id in kx.history() and left.id.startswith("held-")


@pytest.mark.parametrize("backend", ["volcano:ns", "local:"])
def test_fields(kx, tmp_path, backend):
    for slurm, field in table("## Options of sbatch"):
        tree = {"name": "a", "roles": [{"name": "r", "image": "i", "entrypoint": "e"}]}
        (tree["roles"][0] if "(role)" in slurm else tree).update(yaml.safe_load(field))
        if backend != "local:":
            tree.setdefault("scheduler_args", {}).setdefault("queue", "q")
        (tmp_path / "a.yaml").write_text(json.dumps(tree))
        p = run([kx.binary, f"--dry-run={tmp_path / 'a.yaml'}", backend], check=False)
        assert p.returncode == 0, f"{slurm}: {p.stderr}"


def test_one_at_a_time(kx, tmp_path):
    """The example with flock: two jobs submitted at the same time run one after the other."""
    example = textwrap.dedent(re.search(r"^    name: train\n(?:    .*\n)+", PAGE, re.M)[0])
    example = example.replace("/tmp/train.lock", f"{tmp_path}/lock").replace("echo begin", f"echo begin | tee -a {tmp_path}/order")
    example = example.replace("echo end", f"echo end | tee -a {tmp_path}/order")
    for job in [kx.submit(example) for _ in range(3)]:
        job.finish()
        assert job.log() == b"begin\nend\n"
    assert (tmp_path / "order").read_text() == "begin\nend\n" * 3
