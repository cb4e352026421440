#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every later 1.x reads state directories that 1.0.0 wrote, of a machine and of a cluster.

    unshare --uts sh -c 'hostname example; exec tests/replay/test_frozen.py BINARY'

writes data/state-1.0.tar.xz again, with what its mounts showed. Never do that after the release."""

import contextlib
import io
import json
import os
import pathlib
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "mount")]

import harness  # noqa: E402
import kubeconfig  # noqa: E402
import pytest  # noqa: E402
import yaml  # noqa: E402
from apiserver import ApiServer  # noqa: E402
from fakes import FakeVolcano  # noqa: E402

FROZEN = HERE / "data/state-1.0.tar.xz"
FILES = ("state", "status.json", "app.yaml", "manifest.yaml", "log", "main-0/log", "main-1/log")
OPTIONS = "history_keep=3650d"


def app(script="true", hold=False, **fields):
    return json.dumps({**json.loads(harness.app(script, **fields)), "scheduler_args": {"hold": True} if hold else {}})


def shown(kx):
    """Return what a mount shows of finished jobs and of written files, and the targets of their links."""
    files = [f"{place}/{job}/{name}" for place, jobs in (("jobs", kx.ls("jobs")), ("history", kx.history())) for job in jobs
             if kx.read(place, job, "state") != "PENDING\n" for name in FILES]
    files += [f"{place}/{name}" for place in ("submit", "dryrun") for name in kx.ls(place) if not name.endswith(".job")]
    links = [f"submit/{name}" for name in kx.ls("submit") if name.endswith(".job")]
    return {**{name: kx.read(name) for name in files if (kx / name).exists()}, **{name: os.readlink(kx / name) for name in links}}


def fill_machine(kx):
    kx.submit(app("echo one; echo two", num_replicas=2), "good.yaml").finish()
    kx.submit(app("echo bad; exit 3", max_retries=1), "bad.yaml").finish("FAILED")
    removed = kx.submit(app("echo removed"), "removed.yaml")
    removed.finish()
    harness.rmdir(removed.dir)
    kx.submit(app("echo held", hold=True), "held.yaml")
    kx.write("dryrun/dry.yaml", app("echo dry"))


def fill_cluster(kx, volcano):
    for name in ("ended.yaml", "cancelled.yaml"):
        job = kx.submit(app(), name)
        (pod,) = volcano.start(job.id)
        volcano.log(pod).append("one\ntwo\n")
        job.until_logged("one\ntwo\n")
        if name == "ended.yaml":
            volcano.finish_all([pod])
            job.finish()
        job.cancel()
        harness.wait_for(lambda gone=job: gone.id in kx.history())
    kx.submit(app(hold=True), "held.yaml")
    kx.write("dryrun/dry.yaml", app())


@contextlib.contextmanager
def machine(binary, top):
    yield harness.Kxfs(binary, top, OPTIONS), fill_machine


@contextlib.contextmanager
def cluster(binary, top):
    """A cluster without jobs."""
    with ApiServer() as server:
        volcano = FakeVolcano(server)
        config = kubeconfig.write(pathlib.Path(top, "config"), kubeconfig.config(server))
        kx = harness.Kxfs(binary, top, f"{OPTIONS},queue=default", "volcano:test", env={"KUBECONFIG": str(config)})
        yield kx, lambda kx: fill_cluster(kx, volcano)


@pytest.mark.parametrize("place", [machine, cluster])
def test_later_versions_read_it(binary, top, place):
    with place(binary, top) as (kx, _), tarfile.open(FROZEN) as tar:
        members = [member for member in tar.getmembers() if member.name.partition("/")[0] == place.__name__]
        tar.extractall(kx.base, members, numeric_owner=True)
        kx.state.rmdir()
        (kx.base / place.__name__).rename(kx.state)
        try:
            kx.start()
            now, then = shown(kx), json.load(tar.extractfile(f"{place.__name__}.json"))
            assert now.keys() == then.keys()
            for name, text in then.items():
                if name.endswith(("status.json", "manifest.yaml")):  # later versions may add keys
                    assert yaml.safe_load(text).items() <= yaml.safe_load(now[name]).items()
                else:
                    assert now[name] == text
            held = kx.job_of("held.yaml")
            assert held.state() == "PENDING"
            if place is machine:
                harness.write_ctl(held, "release")
                held.finish()
                assert held.log() == b"held\n"
        finally:
            wrong = kx.close()
        assert not wrong


def freeze(binary):
    """Write FROZEN with the kxfs BINARY."""
    with tempfile.TemporaryDirectory() as top, tarfile.open(FROZEN, "w:xz") as tar:
        for place in (machine, cluster):
            with place(binary, top) as (kx, fill):
                kx.work = pathlib.Path("/tmp")
                try:
                    kx.start()
                    fill(kx)
                    kx.restart()
                    data = json.dumps(shown(kx), indent=1).encode()
                    assert kx.end() == 0
                    tar.add(kx.state, place.__name__)
                finally:
                    kx.close()
                info = tarfile.TarInfo(f"{place.__name__}.json")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


if __name__ == "__main__":
    freeze(sys.argv[1])
