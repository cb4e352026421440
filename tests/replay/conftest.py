# SPDX-License-Identifier: MIT
"""Fixtures: an API server, a simulated Volcano on it, and mounts of its namespace `test`."""

import itertools

import kubeconfig
import pytest
from apiserver import ApiServer
from fakes import FakeVolcano
from frontend import Pki


def pytest_collection_modifyitems(items):
    """Spread the tests that wait long for kxfs's timers over the run, so that none of them is among the last."""
    waits = [item for item in items if item.get_closest_marker("waits")]
    items[:] = [item for item in items if not item.get_closest_marker("waits")]
    step = len(items) // (len(waits) + 1) + 1
    for i, item in enumerate(waits):
        items.insert(i * step, item)


@pytest.fixture
def server():
    with ApiServer() as server:
        yield server


@pytest.fixture
def volcano(server):
    return FakeVolcano(server)


@pytest.fixture
def pki(tmp_path):
    return Pki(tmp_path / "pki")


@pytest.fixture
def make_mount(make_kx, tmp_path):
    """make_mount(server, options="", config=None, start=True, ...) returns a Kxfs that mounts volcano:test. CONFIG
    is a kubeconfig as a tree; the default has the URL of the server and its token."""
    number = itertools.count()

    def make(server, options="", config=None, source="volcano:test", env=None, **kwargs):
        path = kubeconfig.write(tmp_path / f"config-{next(number)}",
                                config or kubeconfig.config(server))
        queue = "queue=default" if source.startswith("volcano:") else ""
        return make_kx(options=",".join(filter(None, [queue, options])), source=source, env={"KUBECONFIG": str(path), **(env or {})},
                       **kwargs)

    return make


@pytest.fixture
def kx(make_mount, server, volcano):
    """A mount of a cluster with Volcano."""
    del volcano
    return make_mount(server)
