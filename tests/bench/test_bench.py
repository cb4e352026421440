# SPDX-License-Identifier: MIT
"""The benchmark itself, small: it runs to its end and gives each of its figures."""

import importlib.machinery
import importlib.util
import math
import pathlib

PATH = pathlib.Path(__file__).with_name("run")


def test_bench_runs():
    loader = importlib.machinery.SourceFileLoader("bench_run", str(PATH))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
    loader.exec_module(module)
    rows = module.main(["--jobs", "50", "--log-mb", "4", "--rounds", "1"])
    names = " ".join(row[0] for row in rows)
    for what in ("dry run of a small AppDef", "dry run of 1000 replicas", "read of state", "stat of state", "cat of a log", "cat of it merged", "ls -l",
                 "memory a job", "start with"):
        assert what in names
    assert all(math.isfinite(row[2]) and row[2] > 0 for row in rows)
