# SPDX-License-Identifier: MIT
"""Run failed tests again, for tests/run. A failure that a slow machine may cause counts only if the
test fails twice.

	again.py list REPORTS            the tests to run again, one per line: number, stage, seed, name
	again.py flaky REPORTS NUMBER    record that the test with that number has passed twice since
	again.py keep REPORTS FILE       add the flaky tests of a report to FILE (`tests/run --flaky`)

`Failures`, a pytest plugin, writes each failure of a stage to REPORTS/STAGE.failed.jsonl. Only
tests that use real time are run again. A test for which a sanitizer has reported anything is not.
"""

import json
import os
import pathlib
import re
import sys
import time

STAGES = ("mount", "replay", "cluster", "torchx", "package", "bench", "mount-asan", "replay-asan", "mount-tsan", "replay-tsan")
SANITIZERS = re.compile(r"(Address|Thread|Leak|UndefinedBehavior)Sanitizer|: runtime error: ")
FLAKY_MAX = 5  # more flaky tests in one run can't be chance
AGAIN_MAX = 10  # if more tests failed, none is run again
OFTEN = 3  # entries of one test in the kept list that count as often


def junit_name(nodeid):
    """Return the name that pytest gives the test in its JUnit report."""
    path, bracket, parameters = nodeid.partition("[")
    file, *names = path.split("::")
    return ".".join([re.sub(r"\.py$", "", file).replace("/", "."), *names]) + bracket + parameters


class Failures:
    """Write what each failure reports to a file, once per test."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.seen = set()

    def pytest_runtest_logreport(self, report):
        if not report.failed or report.nodeid in self.seen:
            return
        self.seen.add(report.nodeid)
        text = "\n".join([report.longreprtext, *(section for _, section in report.sections)])
        seed = re.search(r"\bseed[ =:]+(\d+)", text)
        crash = getattr(report.longrepr, "reprcrash", None)
        lines = (crash.message if crash else report.longreprtext).strip().splitlines()
        row = {"test": report.nodeid, "name": junit_name(report.nodeid), "seed": int(seed[1]) if seed else None,
               "load": round(os.getloadavg()[0], 1), "message": lines[0][:400] if lines else "",
               "sanitizer": bool(SANITIZERS.search(text)), "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        with self.path.open("a", encoding="utf-8") as f:
            f.write(json.dumps(row) + "\n")


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def candidates(reports):
    """Return the failures to run again."""
    found = [{"stage": stage, **row} for stage in STAGES for row in rows(reports / f"{stage}.failed.jsonl")
             if not row["sanitizer"]]
    return found if len(found) <= AGAIN_MAX else []


def keep(reports, path):
    """Add missing entries. Return the tests that have many entries."""
    kept = rows(path)
    kept += [row for row in rows(reports / "flaky.jsonl") if row not in kept]
    path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    names = [row["test"] for row in kept]
    return sorted({name for name in names if names.count(name) >= OFTEN})


def main():
    action, reports = sys.argv[1], pathlib.Path(sys.argv[2])
    if action == "list":
        for number, row in enumerate(candidates(reports)):
            print(number, row["stage"], "-" if row["seed"] is None else row["seed"], row["test"], sep="\t")
    elif action == "flaky":
        with (reports / "flaky.jsonl").open("a", encoding="utf-8") as f:
            f.write(json.dumps(candidates(reports)[int(sys.argv[3])]) + "\n")
    else:
        for name in keep(reports, pathlib.Path(sys.argv[3])):
            print(f"{name} has been flaky {OFTEN} times or more: mend it or remove it")


if __name__ == "__main__":
    main()
