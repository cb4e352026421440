# SPDX-License-Identifier: MIT
"""The benchmarks themselves: they run to their end, give each of their figures, and none is off by an
order of magnitude. Local jobs in small, clusters as large as they are to be."""

import importlib.machinery
import importlib.util
import math
import pathlib

PATH = pathlib.Path(__file__).with_name("run")


def figures(*args):
    loader = importlib.machinery.SourceFileLoader("bench_run", str(PATH))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
    loader.exec_module(module)
    rows = module.main(args)
    assert all(math.isfinite(row[2]) and row[2] >= 0 for row in rows)
    return {row[0]: row[2] for row in rows}


def test_local():
    found = figures("--only", "local", "--jobs", "50", "--log-mb", "4", "--rounds", "1")
    names = " ".join(found)
    for what in ("dry run of a small AppDef", "dry run of 1000 replicas", "read of state", "stat of state",
                 "cat of a log", "cat of it merged", "ls -l", "memory a job", "start with", "CPU of it", "rm -r of",
                 "list after a change", "list.jsonl after a change", "cat list.jsonl, no change"):
        assert what in names
    assert all(found.values())


def test_cluster():
    found = figures("--only", "cluster", "--stream-mb", "100", "--rounds", "2", "--idle", "5")
    names = " ".join(found)
    for what in ("read of state", "read of status", "submit with cp",
                 "start, 10000 jobs, 20000 pods", "memory a job", "ls -l of 10000 jobs", "requests an hour",
                 "start, one job of 1000 tasks", "memory a stream of 500", "connections for 500 streams",
                 "CPU, idle, 500 streams", "lag of a line", "1 logs of", "50 logs of"):
        assert what in names
