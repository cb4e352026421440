# SPDX-License-Identifier: MIT
"""Count the results that the stages of tests/run left in the reports directory. Print "N passed, N
failed".

STAGE.status contains a stage's exit status; STAGE.*junit.xml and STAGE.meson.json contain the
results of its tests. A stage that failed without a failing test counts as a failed test. So does a
skipped test, unless its reason is that the machine lacks something (lacking.need). A failed test
that has passed twice since (again.py) counts as passed, and is listed as flaky."""

import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ET

from again import FLAKY_MAX, rows
from lacking import LACKS

ROOT = pathlib.Path(__file__).resolve().parents[1]


def count_junit(path):
    """Return (names that passed, names that failed, {name: reason} of skipped tests) of pytest's
    report."""
    passed, failed, skipped = [], [], {}
    for case in ET.parse(path).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skip = case.find("skipped")
        if skip is not None and (skip.get("message") or "").startswith(LACKS):
            skipped[name] = skip.get("message")
        elif skip is not None or case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        else:
            passed.append(name)
    # A test is listed twice if it fails and its cleanup fails too.
    failed = list(dict.fromkeys(failed))
    return [name for name in passed if name not in failed], failed, skipped


def count_meson(path):
    """Return (names that passed, names that failed, {}) of meson's testlog.json, one test per line."""
    passed, failed = [], []
    for line in path.read_text().splitlines():
        test = json.loads(line)
        (passed if test["result"] == "OK" else failed).append(test["name"])
    return passed, failed, {}


def slowest(reports):
    """Return the twenty slowest tests, one per line."""
    times = []
    for path in reports.glob("*.junit.xml"):
        try:
            cases = list(ET.parse(path).iter("testcase"))
        except ET.ParseError:
            continue  # count_stage reports this
        times += [(float(case.get("time", 0)), path.name.split(".")[0], f"{case.get('classname')}.{case.get('name')}")
                  for case in cases]
    for path in reports.glob("*.meson.json"):
        for line in path.read_text().splitlines():
            test = json.loads(line)
            times.append((test.get("duration") or 0.0, path.name.split(".")[0], test["name"]))
    return "".join(f"{seconds:7.1f} s  {stage}  {name}\n" for seconds, stage, name in sorted(times, reverse=True)[:20])


def longest_lane(reports):
    """Return which stages, in sequence, took as long as the whole run: "first lane: lint 60 s,
    mount 200 s; then bench 90 s"."""
    lanes = {}
    for line in (reports / "begun").read_text().splitlines():
        stage, lane, _ = line.split()
        seconds = reports / f"{stage}.seconds"
        lanes.setdefault(lane, []).append((stage, int(seconds.read_text()) if seconds.exists() else 0))
    alone = lanes.pop("alone", [])
    if (reports / "again.seconds").exists():
        alone.append(("again", int((reports / "again.seconds").read_text())))
    name, longest = max(lanes.items(), key=lambda lane: sum(seconds for _, seconds in lane[1]), default=("no", []))
    parts = [", ".join(f"{stage} {seconds} s" for stage, seconds in part) for part in (longest, alone)]
    return f"critical path: {name} lane: {parts[0]}; then {parts[1]}; {sum(seconds for _, seconds in longest + alone)} s in all"


def lines_of(paths):
    return sum(len(pathlib.Path(path).read_bytes().splitlines()) for path in paths)


def git(*args):
    return subprocess.run(["git", "-C", ROOT, *args], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True).stdout


def size():
    """Return the numbers of lines of the product and the tests, now and at the last tag, if there
    is one."""
    said = []
    for what, folders, names in (("product", ("spec", "backend", "fs"), (".c", ".h")), ("tests", ("tests",), (".c", ".h", ".py"))):
        text = what
        try:
            wanted = [f":(glob){folder}/**/*{name}" for folder in folders for name in names]
            now = lines_of(ROOT / name for name in git("ls-files", "--", *wanted).split("\n") if name and (ROOT / name).exists())
            text = f"{what} {now} lines"
            tag = git("describe", "--tags", "--abbrev=0").strip()
            changes = [line.split("\t")[:2] for line in git("diff", "--numstat", tag, "--", *wanted).splitlines()]
            text += f" ({now - sum(int(new) - int(old) for new, old in changes)} at {tag})"
        except (OSError, subprocess.CalledProcessError):
            pass
        said.append(text)
    return ", ".join(said)


def count_stage(reports, stage, flaky):
    """Return (passed, failed, {name: reason} of skipped tests). FLAKY are the tests that
    failed first, and passed when they were run again."""
    passed, failed, skipped = [], [], {}
    for pattern, count in ((f"{stage}.*junit.xml", count_junit), (f"{stage}.meson.json", count_meson)):
        for path in sorted(reports.glob(pattern)):
            try:
                good, bad, lacking = count(path)
            except (ET.ParseError, ValueError, KeyError) as e:
                good, bad, lacking = [], [f"{path.name} can't be read: {e}"], {}
            passed += good
            failed += bad
            skipped.update(lacking)
    status = (reports / f"{stage}.status").read_text().strip()
    if status != "0" and not failed:
        failed.append(f"the stage ended with status {status}")
    if not passed and not failed and not skipped:
        failed.append("no test ran")
    if status in ("0", "1"):  # any other status means that some tests did not run
        passed += [name for name in failed if name in flaky]
        failed = [name for name in failed if name not in flaky]
    return passed, failed, skipped


def main():
    reports = pathlib.Path(sys.argv[1])
    n_passed = n_failed = n_skipped = 0
    flaky = rows(reports / "flaky.jsonl")
    for path in sorted(reports.glob("*.status"), key=lambda p: p.stat().st_mtime_ns):
        mine = [row for row in flaky if row["stage"] == path.stem]
        passed, failed, skipped = count_stage(reports, path.stem, {row["name"] for row in mine})
        print(f"{path.stem}: {len(passed)} passed, {len(failed)} failed" + (f", {len(skipped)} skipped" if skipped else ""))
        for name in failed:
            print(f"  failed: {name}")
        for name, why in skipped.items():
            print(f"  skipped: {name}: {why}")
        for row in mine:
            print(f"  flaky: {row['name']} (seed {row['seed']}, load {row['load']}): {row['message']}")
        n_passed += len(passed)
        n_failed += len(failed)
        n_skipped += len(skipped)
    if len(flaky) > FLAKY_MAX:
        print(f"failed: {len(flaky)} tests are flaky; {FLAKY_MAX} may be")
        n_failed += 1
    (reports / "times").write_text(slowest(reports))
    print(longest_lane(reports))
    print(size())
    print(f"{n_passed} passed, {n_failed} failed" + (f", {n_skipped} skipped" if n_skipped else ""))
    return 1 if n_failed or not n_passed else 0


if __name__ == "__main__":
    sys.exit(main())
