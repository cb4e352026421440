# SPDX-License-Identifier: MIT
"""The benchmarks themselves: they run to their end and produce all figures. One round is enough, because a figure that
misses twice its goal is measured up to five times (figures.py)."""

import importlib.machinery
import importlib.util
import math
import pathlib

import figures
import pytest
from figures import Figure

pytestmark = pytest.mark.timeout(900)
PATH = pathlib.Path(__file__).with_name("run")


def found(*args):
    loader = importlib.machinery.SourceFileLoader("bench_run", str(PATH))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
    loader.exec_module(module)
    ret = module.main(args)
    assert all(math.isfinite(figure.value) and figure.value >= 0 for figure in ret)
    return ret


def names(*args):
    return " ".join(figure.name for figure in found(*args))


def test_local():
    said = names("--only", "local", "--rounds", "1")
    for what in ("dry run of a small AppDef", "dry run of 1000 replicas", "read of state", "stat of state",
                 "cat of a log of 1024 MiB", "cat of it merged", "ls -l of 10000 finished jobs", "memory a job",
                 "start with 10000 jobs", "CPU of it", "rm -r of 500 finished jobs", "1000 jobs archived by a mount", "start with 1000 archived jobs",
                 "list after a change",
                 "list.jsonl after a change", "cat list.jsonl, no change"):
        assert what in said


def test_cluster():
    said = names("--only", "cluster", "--rounds", "1", "--idle", "5")
    for what in ("read of state", "read of status", "submit with cp", "start, 10000 jobs, 20000 pods", "memory a job",
                 "ls -l of 10000 running jobs", "start, 10000 Jobs with one pod each",
                 "start, 10000 RayJobs with 2 pods and a cluster each", "memory a RayJob", "start of all kinds, 10000 Jobs",
                 "memory a Job with one pod",
                 "requests an hour", "start, one job of 1000 tasks",
                 "memory a stream of 500", "connections for 500 streams", "CPU, idle, 500 streams", "lag of a line",
                 "1 log of 500 MiB", "50 logs of 10 MiB"):
        assert what in said


def test_peers():
    said = names("--only", "peers", "--rounds", "1", "--stream-mb", "100")
    for what in ("submit a job, beside torchx run", "state of a job, beside torchx status"):
        assert what in said


def test_cost():
    said = names("--only", "cost")
    for what in ("a mount of all: an hour", "a mount with mine: start", "of these pods"):
        assert what in said


def again(monkeypatch, *ratios):
    """Return (the run's figures, number of measurements) for a figure whose measurements have the
    RATIOS."""
    monkeypatch.setattr(figures.time, "sleep", lambda seconds: None)
    calls = []

    def call():
        calls.append(ratios[len(calls)])
        yield Figure("cat", "ms", 10 * calls[-1], 1, "its file", 10)

    ret = figures.Figures()
    ret.measure(call)
    return ret, len(calls)


def test_what_misses_its_limit_is_measured_again(monkeypatch, capsys):
    run, calls = again(monkeypatch, 5, 3, 1.5)
    assert (run.wrong(), calls) == ([], 3)
    assert run.short() == ["cat, beside its file: 1.50, the goal is 1"]
    assert "measured again: cat, beside its file is 3.00, the limit 2" in capsys.readouterr().out


def test_what_misses_its_limit_each_time_fails(monkeypatch):
    run, calls = again(monkeypatch, 5, 3, 4, 6, 3)
    assert (run.wrong(), calls) == (["cat, beside its file: 3.00 is more than 2, 2 times the goal"], 5)
