# SPDX-License-Identifier: MIT
"""TorchX's own commands with jobs of a mount, TorchX's jobs in a mount, and TorchX using a mount
through contrib/torchx. TorchX is installed from PyPI into environments beside the cluster's parts.
KXFS_TORCHX_PYTHON is a Python that already has it."""

import fcntl
import json
import os
import pathlib
import sys

import build
import pytest
from harness import ROOT, Job, run, wait_for
from mounted import HOLD, IMAGE, app, ended, running

sys.path.insert(1, str(ROOT / "tests/torchx"))

import environment as environments  # noqa: E402
import torchx_env  # noqa: E402


@pytest.fixture(scope="module")
def program():
    given = os.environ.get("KXFS_TORCHX_PYTHON")
    if given:
        return pathlib.Path(given).parent / "torchx"
    path = build.cache_dir() / "torchx-0.7.0"
    with open(build.cache_dir() / "torchx.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        python = path / "bin/python" if (path / "complete").exists() else torchx_env.python(path)
    return python.parent / "torchx"


@pytest.fixture
def torchx(program, world, tmp_path):
    """Return a function that runs torchx as the administrator, in the test's namespace."""
    config = json.loads(world.kubectl("config", "view", "--raw", "--minify", "--flatten",
                                      "-o", "json").stdout)
    config["contexts"][0]["context"]["namespace"] = world.namespace
    path = tmp_path / "torchx.kubeconfig"
    path.write_text(json.dumps(config))
    return lambda *args: run([str(program), *args], cwd=tmp_path,
                             env={"KUBECONFIG": str(path), "HOME": str(tmp_path)})


def knows_our_job(kx, world, torchx, scheduler):
    """Run TorchX's commands for SCHEDULER on a running job of ours. Return the job's handle after
    it has finished."""
    job = kx.submit(app(HOLD, name="trainer"))
    handle = f"{scheduler}://torchx/{world.namespace}:{job.id}"
    pod = running(job)
    wait_for(lambda: job.status()["phase"] == "Running", what="the controller's word")
    job.until_logged("begin")
    assert "RUNNING" in torchx("status", handle).stdout
    assert f"{handle}  " in torchx("list", "-s", scheduler).stdout
    log = torchx("log", f"{handle}/main/0").stdout
    assert log.startswith("main/0 ") and log.endswith(" begin\n"), "with a time in between"
    world.release(pod)
    job.finish()
    return handle


def test_on_our_jobs(kx, world, torchx):
    handle = knows_our_job(kx, world, torchx, "kubernetes")
    assert "SUCCEEDED" in torchx("status", handle).stdout


def test_its_job(kx, torchx):
    p = torchx("run", "--workspace", "", "-s", "kubernetes", "-cfg",
               f"queue=default,namespace={kx.source.partition(':')[2]}",
               "utils.sh", "--image", IMAGE, "sh", "-c", "echo hello; exit 2")
    ident = p.stdout.strip().splitlines()[0].rpartition(":")[2]
    wait_for(lambda: ident in kx.ls("jobs"), what="the job")
    job = kx.jobs()[0]
    ended(job, "FAILED")
    assert job.replica("sh-0")["exit_code"] == 2 and job.status()["app"] == "sh"
    wait_for(lambda: job.log("sh-0") == b"hello\n", what="its output")


COMPONENT = f'''
import torchx.specs as specs

def hold() -> specs.AppDef:
    """It runs until it is told to end."""
    return specs.AppDef("trainer", [specs.Role("main", image="{IMAGE}", entrypoint="sh", args=["-c", {HOLD.replace("$", "$$")!r}],
                                               resource=specs.Resource(cpu=0.1, gpu=0, memMB=64))])
'''


@pytest.mark.parametrize("version", list(environments.PACKAGES))
def test_scheduler_kxfs(kx, world, tmp_path, version, pytestconfig, tmp_path_factory):
    """torchx -s kxfs works without a kubeconfig: run, status, log, list, wait, cancel, delete."""
    environment = environments.make(version, pytestconfig, tmp_path_factory, build.cache_dir() / "torchx-kxfs")
    (tmp_path / "parts.py").write_text(COMPONENT)

    def torchx(*args):
        return run([str(environment.torchx), *args], cwd=tmp_path, env={"KXFS_MOUNT": str(kx.mnt), "HOME": str(tmp_path)})

    def launch():
        p = torchx("run", "-s", "kxfs", "--workspace", "", "-cfg", "queue=default", "parts.py:hold")
        handle = p.stdout.strip().splitlines()[-1]
        job = Job(kx, handle.removeprefix("kxfs://torchx/"))
        return handle, job, running(job)

    handle, job, pod = launch()
    job.until_logged("begin")
    wait_for(lambda: job.status()["phase"] == "Running", what="the controller's word")
    assert job.id in world.jobs() and job.state() == "RUNNING"
    assert "State: RUNNING" in torchx("status", handle).stdout
    assert torchx("log", "--regex", "^beg", handle).stdout == "main/0 begin\n"
    assert any(line.startswith(handle) and "RUNNING" in line for line in torchx("list", "-s", "kxfs").stdout.splitlines())
    world.release(pod)
    assert torchx("log", "--tail", f"{handle}/main/0").stdout == "main/0 begin\nmain/0 end\n"
    job.finish()
    assert "State: SUCCEEDED" in torchx("status", handle).stdout
    handle, job, pod = launch()
    torchx("cancel", handle)
    if environment.can_delete:
        job.finish("CANCELLED")
        torchx("delete", handle)
    wait_for(lambda: job.id not in world.jobs(), what="the job to be gone")
    assert "State: CANCELLED" in torchx("status", handle).stdout
