# SPDX-License-Identifier: MIT
"""Fixtures: each test runs with TorchX 0.7.0 and with a nightly.

  environment   a Python that has TorchX and contrib/torchx
  kx            a mount of local:
  cluster       a mount of a namespace of the replaying API server (`server`), with a simulated Volcano (`volcano`)
  torchx        torchx(kx, ...) runs the command line on a mount, in the directory `work`
  api           api(kx, script) runs a script with `runner`, a TorchX Runner, and returns what it prints as JSON

The command line and the scripts see only the test's own mounts. A job is searched in all mounts,
and those of other tests may end or hang at that moment."""

import json
import os
import pathlib
import sys
import textwrap

import environment as environments
import harness
import pytest
from environment import PRELUDE, UNMOUNT

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "replay"))

import kubeconfig  # noqa: E402
from apiserver import ApiServer  # noqa: E402
from fakes import FakeVolcano  # noqa: E402


@pytest.fixture(scope="session", params=list(environments.PACKAGES))
def environment(request, tmp_path_factory):
    return environments.make(request.param, request.config, tmp_path_factory)


@pytest.fixture
def work(tmp_path):
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def server():
    with ApiServer() as server:
        yield server


@pytest.fixture
def volcano(server):
    return FakeVolcano(server)


@pytest.fixture
def cluster(make_kx, server, volcano, tmp_path):
    del volcano
    path = kubeconfig.write(tmp_path / "config", kubeconfig.config(server))
    return make_kx(source="volcano:test", env={"KUBECONFIG": str(path)})


# $0 is the directory of the mounts to keep.
APART = f"""
sed -n "s/ - fuse.kxfs .*//p" /proc/self/mountinfo | cut -d" " -f5 | grep -v "^$0/" | {UNMOUNT}
exec "$@"
"""


@pytest.fixture
def apart(top):
    """Return apart(command), which runs the command where only the mounts of this session exist."""
    return lambda *command: ["unshare", "-m", "bash", "-c", APART, os.path.realpath(top), *map(str, command)]


@pytest.fixture
def torchx(environment, work, apart):
    def call(kx, *args, env=None, **kwargs):
        named = {"KXFS_MOUNT": str(kx.mnt)} if kx else {}
        return harness.run(apart(environment.torchx, *args), cwd=work,
                           env={"HOME": str(work), **named, **(env or {})}, **kwargs)

    call.program = environment.torchx
    return call


@pytest.fixture
def api(environment, work, apart):
    def call(kx, script, env=None):
        named = {"KXFS_MOUNT": str(kx.mnt)} if kx else {}
        p = harness.run(apart(environment.python, "-c", PRELUDE + textwrap.dedent(script)), cwd=work,
                        env={"HOME": str(work), **named, **(env or {})})
        return json.loads(p.stdout.splitlines()[-1])

    return call
