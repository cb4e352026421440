# SPDX-License-Identifier: MIT
"""TorchX's built-in components: their arguments, and what TorchX made of them, recorded in
torchx-VERSION.json by `python3 test_components.py`, which installs both versions. kxfs must make
the same object as TorchX of each AppDef, except for the differences in docs/deviations.md."""

import functools
import json
import pathlib
import subprocess
import tempfile

import pytest
import torchx_env
import yaml
from deviations import DEVIATIONS, ID, Case, container, take_additions, take_job_id
from golden import HERE, difference, load, make, rename, run

VERSIONS = (torchx_env.FIRST, torchx_env.LATER)
MOUNTS = "type=bind,src=/data,dst=/data,readonly,type=volume,src=claim,dst=/models,type=device,src=/dev/fuse,perm=rw"
COMPONENTS = {
    "dist.ddp": ["-j", "2x4", "-h", "aws_p4d.24xlarge", "--env", "A=1,B=x", "--mounts", MOUNTS, "--max_retries", "2",
                 "--script", "train.py", "--", "--lr", "1e-3"],
    "dist.spmd": ["-j", "2x2", "-h", "gpu.small", "-m", "a.b", "--", "x"],
    "dist.torchrun": ["-j", "2:4x8", "-h", "gpu.xlarge", "--script", "train.py"],
    "metrics.tensorboard": ["--logdir", "s3://bucket/logs"],
    "serve.torchserve": ["--model_path", "s3://bucket/model.mar", "--management_api", "http://serve:8081"],
    "utils.binary": ["--entrypoint", "/bin/true", "--num_replicas", "2", "x"],
    "utils.booth": ["--x1", "1", "--x2", "2"],
    "utils.copy": ["--src", "/a", "--dst", "s3://bucket/b"],
    "utils.echo": ["--msg", "${app_id} $${HOME}", "--num_replicas", "3"],
    "utils.hydra": ["-cn", "job", "role.num_replicas=2"],
    "utils.python": ["-m", "a.b", "--memMB", "2048", "--", "x"],
    "utils.sh": ["--max_retries", "2", "--num_replicas", "2", "--env", "A=1", "echo", "$HOME"],
    "utils.touch": ["--file", "/tmp/x"],
}
ONLY = {"dist.torchrun": torchx_env.LATER, "utils.hydra": torchx_env.LATER, "metrics.tensorboard": torchx_env.FIRST,
        "serve.torchserve": torchx_env.FIRST}
CASES = [(version, name) for version in VERSIONS for name in COMPONENTS if ONLY.get(name, version) == version]
OPTIONS = {(torchx_env.FIRST, "volcano"): {"queue": "research"}, (torchx_env.FIRST, "mcad"): {"priority": 3},
           (torchx_env.LATER, "volcano"): {"queue": "research", "validate_spec": False}}
# utils.hydra expects this file in the current directory.
HYDRA = """\
role:
  _target_: torchx.specs.Role
  name: worker
  image: img:1
  entrypoint: python
  args: ["-m", "x", "${torchx.replica_id:}"]
  num_replicas: 1
app:
  _target_: torchx.specs.AppDef
  name: hydra-job
  roles: ["${role}"]
"""


class TorchX:
    """The real TorchX, which answers requests (torchx_driver.py)."""

    def __init__(self, program):
        # pylint: disable=consider-using-with
        self.home = tempfile.TemporaryDirectory()
        config = pathlib.Path(self.home.name) / ".torchx/job.yaml"
        config.parent.mkdir()
        config.write_text(HYDRA)
        self.process = subprocess.Popen([program, HERE / "torchx_driver.py"], stdin=subprocess.PIPE, cwd=self.home.name,
                                        env={"HOME": self.home.name, "PATH": "/usr/bin:/bin"},
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "TorchX has ended"
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.home.cleanup()


def record(torchx, version, name):
    """Return what TorchX makes of a component: its output, and the object for each kind."""
    made = {"args": COMPONENTS[name]}
    for (other, kind), options in OPTIONS.items():
        if other == version:
            reply = torchx.ask(kind=kind, component=name, args=COMPONENTS[name], options=options)
            assert "job" in reply, reply
            if reply.get("dry_run", {}).get("app") == reply["dump"]:
                del reply["dump"]  # it is also in dry_run
            made[kind] = {"options": options, **reply}
    return made


@functools.cache
def texts_of(version):
    made = json.loads((HERE / f"torchx-{version}.json").read_text())
    return {name: json.dumps(value) for name, value in made.items()}


def recorded(version, name):
    return json.loads(texts_of(version)[name])


def main():
    for version in VERSIONS:
        with tempfile.TemporaryDirectory() as where:
            torchx = TorchX(torchx_env.python(where, version))
            made = {name: record(torchx, version, name) for other, name in CASES if other == version}
            (HERE / f"torchx-{version}.json").write_text(json.dumps(made, indent=1) + "\n")
            torchx.close()


VERSION_LABEL = "torchx.pytorch.org/version"
ALWAYS = ("BUG-10", "BUG-1", "BUG-4", "BUG-23", "BUG-24", "NEW-image")
MADE = [(version, name, kind) for version, name in CASES for kind in ("volcano", "mcad") if kind in recorded(version, name)]


def expected(made, case):
    """Return the recorded object with the differences that kxfs makes."""
    job = rename(made["job"], case.torchx_id, ID)
    for _, _, pod, _ in case.pods(job):
        env = container(pod)["env"]
        env[:] = [variable for variable in env if variable["name"] != "TORCHX_JOB_ID"]
        labels = pod["metadata"]["labels"]
        labels[VERSION_LABEL] = torchx_env.FIRST  # the version that manifests are compatible with
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
    """Check dataclasses.asdict(AppDef)."""
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
    """Check the whole output of torchx run --dryrun --json, which names its scheduler."""
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


if __name__ == "__main__":
    main()
