# SPDX-License-Identifier: MIT
"""-o archive=DIR of a mount: what captures have put there is shown in history/, with all that a job of the history has."""

import errno
import json
import os
import shutil

import harness
import pytest
import store as st
import watching
from archiving import finish
from harness import wait_for


@pytest.fixture
def show(archive, make_mount, server):
    """Make a mount that has an archive and a state directory of its own."""

    def make(options="", **kwargs):
        return make_mount(server, options=",".join(filter(None, [f"archive={archive.dir}", options])), **kwargs)

    return make


def names(kx):
    return set(kx.history())


def test_jobs_of_others(archive, show, server, volcano):
    """Jobs that ran and went while there was no mount stand in history/ of a later one, with their texts and logs."""
    archive.up()
    server.store.add(st.JOBS, watching.job("pair", tasks={"main": 2}))
    pods = volcano.start("pair")
    for i, pod in enumerate(pods):
        volcano.log(pod).append(f"hello from {i}\n")
        volcano.finish(pod, code=7 * i)
    wait_for(lambda: archive.lines().get("pair", {}).get("state") == "FAILED", what=archive.kx.said)
    wait_for(lambda: archive.log("pair", "main-1/log.0") == b"hello from 1\n")
    server.store.remove(st.JOBS, "test", "pair")
    finish(server, volcano, archive, "other", "other\n")
    wait_for(lambda: archive.lines().get("other", {}).get("state") == "SUCCEEDED")
    status = archive.status("pair")
    archive.end()

    kx = show()
    wait_for(lambda: names(kx) == {"pair", "other"}, what=kx.said)
    history = kx / "history"
    assert "archive_reachable: true" in kx.read(".kxfs", "info") and "archive_jobs: 2" in kx.read(".kxfs", "info")
    table = (history / "list").read_text()
    assert "pair" in table and "FAILED" in table
    lines = {line["id"]: line for line in map(json.loads, (history / "list.jsonl").read_text().splitlines())}
    assert lines["pair"] == status
    assert (history / "pair/state").read_text() == "FAILED\n"
    assert json.loads((history / "pair/status.json").read_text()) == status
    assert "exit code 7" in (history / "pair/why").read_text()
    assert "exit_code: 7" in (history / "pair/main-1/status").read_text()
    assert "kind: Job" in (history / "pair/manifest.yaml").read_text()
    assert set(kx.ls("history", "pair")) == {"state", "status", "status.json", "why", "usage", "manifest.yaml", "events", "logs",
                                             "log", "stamped", "main-0", "main-1"}
    assert (history / "pair/main-0/log").stat().st_size == len("hello from 0\n")
    assert (history / "pair/main-0/log").read_text() == "hello from 0\n"
    assert (history / "pair/logs/main-1.log").read_text() == "hello from 1\n"
    assert sorted((history / "pair/log").read_text().splitlines()) == ["main/0 hello from 0", "main/1 hello from 1"]
    stamped = (history / "pair/main-0/stamped").read_text()
    assert stamped.endswith("Z hello from 0\n") and stamped.startswith("20")
    # What was read is read again without the archive.
    shutil.rmtree(archive.dir)
    assert (history / "pair/main-0/log").read_text() == "hello from 0\n"
