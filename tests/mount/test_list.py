# SPDX-License-Identifier: MIT
"list and list.jsonl: all jobs at a glance, in the root those "
"of jobs/, in history/ those that have left it."

import json
import os
import re

from harness import app, run, wait_for

TITLES = ["ID", "STATE", "AGE", "QUEUE", "READY", "RETRIES", "SUBMITTER", "REASON"]


def rows(text):
    """Return the table as dictionaries. Every line has as many words as there are titles."""
    head, *lines = [line.split() for line in text.splitlines()]
    assert head == TITLES
    assert all(len(line) == len(head) for line in lines), text
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_list(kx):
    assert rows(kx.read("list")) == rows(kx.read("history/list")) == []
    assert kx.read("list.jsonl") == kx.read("history/list.jsonl") == ""
    runs = kx.submit(app("sleep 1000", name="runs", num_replicas=2))
    runs.until("RUNNING")
    wait_for(lambda: runs.status()["roles"][0]["running"] == 2)
    fails = kx.submit(app("exit 3", name="fails", num_replicas=2))
    fails.finish("FAILED")
    # the last changed first
    assert [row["ID"] for row in rows(kx.read("list"))] == [fails.id, runs.id]
    by_id = {row["ID"]: row for row in rows(kx.read("list"))}
    assert re.fullmatch(r"\d+[sm]", by_id[runs.id].pop("AGE"))
    assert re.fullmatch(r"root@\S+", by_id[runs.id].pop("SUBMITTER"))
    assert by_id[runs.id] == {"ID": runs.id, "STATE": "RUNNING", "QUEUE": "-", "READY": "2/2", "RETRIES": "0",
                              "REASON": "-"}
    assert (by_id[fails.id]["STATE"], by_id[fails.id]["REASON"]) == ("FAILED", "Error")
    # Columns are below their titles.
    head, *lines = kx.read("list").splitlines()
    for title in TITLES[1:]:
        at = head.index(title)
        assert all(line[at - 2:at] == "  " and line[at] != " " for line in lines), (title, lines)
    (runs / "ctl").write_text("suspend")
    runs.until("CANCELLED")
    assert [row["ID"] for row in rows(kx.read("list"))] == [runs.id, fails.id]


def test_jsonl(kx):
    """Each line is the present status.json of a job."""
    jobs = [kx.submit(app("true", name=f"job{i}")) for i in range(3)]
    for job in jobs:
        job.finish()
    lines = kx.read("list.jsonl").splitlines()
    assert {json.loads(line)["id"]: json.loads(line) for line in lines} == {job.id: job.status() for job in jobs}
    # All keys are equal, so a program for one can read the other.
    for line in lines:
        job = json.loads(line)["id"]
        assert list(json.loads(line)) == list(json.loads(kx.read("jobs", job, "status.json")))
    out = run(f"tail -n 1 {kx.mnt}/list.jsonl && wc -l < {kx.mnt}/list.jsonl").stdout.splitlines()
    assert json.loads(out[0])["id"] == json.loads(lines[-1])["id"] and out[1] == "3"


def test_history(kx):
    """A job moves from one list to the other, and removing the files of history/ changes nothing."""
    job = kx.submit(app("true"))
    job.finish()
    job.cancel()
    assert rows(kx.read("list")) == [] and kx.read("list.jsonl") == ""
    assert [row["ID"] for row in rows(kx.read("history/list"))] == [job.id]
    assert [json.loads(line)["id"] for line in kx.read("history/list.jsonl").splitlines()] == [job.id]
    assert json.loads(kx.read("history/list.jsonl")) == json.loads((job.old / "status.json").read_text())
    kx.restart()
    assert [row["ID"] for row in rows(kx.read("history/list"))] == [job.id]
    run(f"rm -r {kx.mnt}/history/*")
    assert kx.ls("history") == ["list", "list.jsonl"]
    assert rows(kx.read("history/list")) == []


def test_made_anew_when_something_changed(kx):
    """While nothing happens, a new reader gets the same file; an open file never changes."""
    first = kx.submit(app("true", name="first"))
    first.finish()
    times = {name: os.stat(kx / name).st_mtime_ns for name in ("list.jsonl", "history/list", "history/list.jsonl")}
    assert kx.read("list.jsonl") == kx.read("list.jsonl")
    assert {name: os.stat(kx / name).st_mtime_ns for name in times} == times
    with open(kx / "list.jsonl", encoding="utf-8") as held:
        second = kx.submit(app("true", name="second"))
        second.finish()
        assert [json.loads(line)["id"] for line in held] == [first.id]
    assert os.stat(kx / "list.jsonl").st_mtime_ns > times["list.jsonl"]
    assert os.stat(kx / "history/list").st_mtime_ns == times["history/list"]
    assert [json.loads(line)["id"] for line in kx.read("list.jsonl").splitlines()] == [second.id, first.id]


def test_age_goes_on(kx):
    """An age is correct although no job has changed."""
    job = kx.submit(app("true"))
    job.finish()

    def age():
        [row] = rows(kx.read("list"))
        return row["AGE"]

    first = age()
    wait_for(lambda: age() != first)
    assert re.fullmatch(r"\d+[sm]", age())


def test_read_only(kx):
    assert run(f"echo x > {kx.mnt}/list", check=False).returncode != 0
    assert run(["rm", str(kx / "list")], check=False).returncode != 0
    assert "list" in kx.ls()
