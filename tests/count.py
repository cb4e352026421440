# SPDX-License-Identifier: MIT
"""Count what the stages of tests/run left in the directory of reports; print "N passed, N failed".

STAGE.status holds a stage's exit status, *.junit.xml and *.meson.json what its tests gave. A
skipped test counts as failed, and so does a stage that failed without a failing test.
"""

import json
import pathlib
import sys
import xml.etree.ElementTree as ET


def count_junit(path):
    """(names that passed, names that failed) of pytest's report."""
    passed, failed = [], []
    for case in ET.parse(path).iter("testcase"):
        bad = any(case.find(kind) is not None for kind in ("failure", "error", "skipped"))
        (failed if bad else passed).append(f"{case.get('classname')}.{case.get('name')}")
    # A test that fails and whose clean-up fails too stands there twice.
    failed = list(dict.fromkeys(failed))
    return [name for name in passed if name not in failed], failed


def count_meson(path):
    """The same of meson's testlog.json, one test a line."""
    passed, failed = [], []
    for line in path.read_text().splitlines():
        test = json.loads(line)
        (passed if test["result"] == "OK" else failed).append(test["name"])
    return passed, failed


def slowest(reports):
    """The twenty slowest tests, a line each."""
    times = []
    for path in reports.glob("*.junit.xml"):
        try:
            cases = list(ET.parse(path).iter("testcase"))
        except ET.ParseError:
            continue  # count_stage tells
        times += [(float(case.get("time", 0)), path.name.split(".")[0], f"{case.get('classname')}.{case.get('name')}")
                  for case in cases]
    for path in reports.glob("*.meson.json"):
        for line in path.read_text().splitlines():
            test = json.loads(line)
            times.append((test.get("duration") or 0.0, path.name.split(".")[0], test["name"]))
    return "".join(f"{seconds:7.1f} s  {stage}  {name}\n" for seconds, stage, name in sorted(times, reverse=True)[:20])


def count_stage(reports, stage):
    passed, failed = [], []
    for path, count in (
        (reports / f"{stage}.junit.xml", count_junit),
        (reports / f"{stage}.meson.json", count_meson),
    ):
        if path.exists():
            try:
                good, bad = count(path)
            except (ET.ParseError, ValueError, KeyError) as e:
                good, bad = [], [f"{path.name} can't be read: {e}"]
            passed += good
            failed += bad
    status = (reports / f"{stage}.status").read_text().strip()
    if status != "0" and not failed:
        failed.append(f"the stage ended with status {status}")
    if not passed and not failed:
        failed.append("no test ran")
    return passed, failed


def main():
    reports = pathlib.Path(sys.argv[1])
    n_passed = n_failed = 0
    for path in sorted(reports.glob("*.status"), key=lambda p: p.stat().st_mtime_ns):
        passed, failed = count_stage(reports, path.stem)
        print(f"{path.stem}: {len(passed)} passed, {len(failed)} failed")
        for name in failed:
            print(f"  failed: {name}")
        n_passed += len(passed)
        n_failed += len(failed)
    (reports / "times").write_text(slowest(reports))
    print(f"{n_passed} passed, {n_failed} failed")
    return 1 if n_failed or not n_passed else 0


if __name__ == "__main__":
    sys.exit(main())
