# SPDX-License-Identifier: MIT
"""list and list.jsonl of a cluster: queue and submitter, unconfirmed jobs, names given by other users."""

import json
import os

import harness
import pytest
import store as st
import watching

# Longer than a cell, with characters that a terminal obeys and that break a table.
HOSTILE = "ada\n\x1b[2J lovelace\t\u202e\u4e2d" + "x" * 5000


def rows(text):
    """Return ID -> the words of its line, below the titles."""
    return {line.split()[0]: line.split()[1:] for line in text[text.index("ID "):].splitlines()[1:]}


def test_queue_and_submitter(kx, server, volcano):
    job = kx.submit(harness.app("true", num_replicas=2))
    volcano.start(job.id)
    watching.until_runs(job)
    assert job.status()["roles"][0]["running"] == 2
    state, age, queue, ready, retries, submitter, reason = rows(kx.read("list"))[job.id]
    assert (state, queue, ready, retries, reason) == ("RUNNING", "default", "2/2", "0", "-")
    assert submitter == job.status()["submitter"] != "" and age[-1] in "smh"
    [line] = [json.loads(line) for line in kx.read("list.jsonl").splitlines()]
    assert line == job.status()


def test_hostile(kx, server):
    """A user's text in an object remains in its cell."""
    server.store.add(st.JOBS, watching.job("theirs", annotations={"kxfs/submitter": HOSTILE}))
    harness.wait_for(lambda: "theirs" in kx.ls("jobs"))
    text = kx.read("list")
    assert text.isascii() and text.replace("\n", "").isprintable() and max(map(len, text.splitlines())) < 200
    assert len(text.splitlines()) == 2
    submitter = rows(text)["theirs"][5]
    assert submitter.startswith("ada??[2J?lovelace???xx") and submitter.endswith("...")


@pytest.mark.concurrent
def test_stale(kx, server):
    """The first line has the time since which nothing is confirmed, even without any job."""
    assert kx.read("list").startswith("ID ")
    server.away()
    harness.wait_for(lambda: kx.read("list").startswith("stale_since: 20"))
    first, titles = kx.read("list").splitlines()
    info = kx.read(".kxfs", "info")
    assert first.split()[1] in info and titles.startswith("ID ")
    server.back()
    server.store.add(st.JOBS, watching.job("one"))
    harness.wait_for(lambda: kx.read("list").startswith("ID "))
    harness.wait_for(lambda: "one" in rows(kx.read("list")))
    server.away()
    harness.wait_for(lambda: kx.read("list").startswith("stale_since: 20"))
    assert "one" in rows(kx.read("list"))
    harness.wait_for(lambda: json.loads(kx.read("list.jsonl"))["stale_since"])
    assert kx.read("history", "list").startswith("ID ")


@pytest.mark.parametrize("name", ["list", "list.jsonl"])
def test_job_of_that_name(name, make_mount, server):
    """A job whose id is the name of a file in history/ is there under another name, complete."""
    owner = server.store.add(st.JOBS, watching.job(name, phase="Running"))
    pod = server.store.add(st.PODS, watching.pod(owner, "main", 0, phase="Running"))
    server.api.log(pod, "main").append("hello\n")
    kx = make_mount(server, options="capture=all,cancel=all")
    log = kx / f"jobs/{name}/main-0/log"
    harness.wait_for(lambda: log.stat().st_size == 6)
    server.store.remove(st.PODS, "test", pod.name)
    server.store.remove(st.JOBS, "test", name)
    harness.wait_for(lambda: f"{name}-" in kx.ls("history"))
    assert kx.read("history", f"{name}-", "main-0", "log") == "hello\n"
    assert name in kx.read("history/list") and json.loads(kx.read("history/list.jsonl"))["id"] == name
    harness.remove(kx / f"history/{name}-")
    assert kx.history() == [] and os.path.isfile(kx / f"history/{name}")
