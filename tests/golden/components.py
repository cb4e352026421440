# SPDX-License-Identifier: MIT
"""TorchX's built-in components: how each is called, and what TorchX made of it, recorded in torchx-VERSION.json
by `python3 components.py`, which installs both versions."""

import functools
import json
import pathlib
import subprocess
import tempfile

import torchx_env
from golden import HERE

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
# utils.hydra looks for it where it is called.
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
    """The real one, which answers questions (torchx_driver.py)."""

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
    """What TorchX makes of a component: what it prints, and the object for each kind."""
    made = {"args": COMPONENTS[name]}
    for (other, kind), options in OPTIONS.items():
        if other == version:
            reply = torchx.ask(kind=kind, component=name, args=COMPONENTS[name], options=options)
            assert "job" in reply, reply
            if reply.get("dry_run", {}).get("app") == reply["dump"]:
                del reply["dump"]  # it stands in dry_run
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


if __name__ == "__main__":
    main()
