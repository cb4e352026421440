# SPDX-License-Identifier: MIT
"""Print what tests/run is doing: `progress.py REPORTS STAGE...`, until its standard error is closed
or it is killed.

REPORTS/STAGE.running exists while a stage runs, and STAGE.seconds when it has ended. "again", which
runs failed tests again, counts as a stage too, and takes no time in most runs. The progress of a
stage is in STAGE.progress ("done total failed", from conftest.py), or in the output of ninja
("[12/503]") or meson ("12/122"). The durations of stages are kept outside the tree from run to run,
to estimate the remaining time.

A terminal gets one line that changes. Anything else gets a line each half minute."""

import json
import os
import pathlib
import re
import sys
import time


def cache():
    given = os.environ.get("KXFS_CACHE_DIR")
    if given:
        return pathlib.Path(given) / "times.json"
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "kxfs-tests/times.json"


def known_times(path):
    try:
        known = json.loads(path.read_text())
        return {stage: float(seconds) for stage, seconds in known.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def last_match(path, pattern):
    """Return the last match of PATTERN near the end of PATH, or None."""
    try:
        with path.open("rb") as f:
            f.seek(max(0, path.stat().st_size - 4096))
            found = re.findall(pattern, f.read().decode(errors="replace"), re.M)
    except OSError:
        return None
    return found[-1] if found else None


def how_far(reports, stage):
    """Return what a running stage is doing: "mount 120 of 735, 1 failed"."""
    progress = last_match(reports / f"{stage}.progress", r"^(\d+) (\d+) (\d+)$")
    if progress:
        done, total, failed = progress
        return f"{stage} {done} of {total}" + (f", {failed} failed" if failed != "0" else "")
    unit = last_match(reports / f"{stage}.log", r"^ *(\d+)/(\d+) ")
    if unit:
        return f"{stage} {unit[0]} of {unit[1]}"
    for log in reports.glob("*-build.log"):
        built = last_match(log, r"\[(\d+)/(\d+)\]")
        if built and not log.with_name(log.name + ".done").exists():
            return f"{stage}: building {log.name.removesuffix('-build.log')}, {built[0]} of {built[1]}"
    return f"{stage}: begins"


def left(reports, stages, known):
    """Return the seconds that the rest takes with two stages at a time, or None if a stage was
    never timed here."""
    total = longest = 0
    for stage in stages:
        if (reports / f"{stage}.seconds").exists():
            continue
        if stage not in known and stage != "again":
            return None
        rest = known.get(stage, 0)
        try:
            rest = max(5.0, rest - (time.time() - (reports / f"{stage}.running").stat().st_mtime))
        except OSError:
            pass
        total += rest
        longest = max(longest, rest)
    return max(longest, total / 2)


def line(reports, stages, known):
    running = [stage for stage in stages if (reports / f"{stage}.running").exists()]
    over = sum((reports / f"{stage}.seconds").exists() for stage in stages)
    rest = left(reports, stages, known)
    text = f"{over} of {len(stages)} stages done; " + "; ".join(how_far(reports, stage) for stage in running)
    if rest is not None:
        text += f"; about {round(rest / 60)} min left" if rest > 90 else f"; about {round(rest)} s left"
    return text


def note_times(reports, stages, known, path):
    """Keep the durations of the stages that passed."""
    for stage in stages:
        try:
            if (reports / f"{stage}.status").read_text().strip() == "0":
                known[stage] = float((reports / f"{stage}.seconds").read_text())
        except (OSError, ValueError):
            continue
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps(known))
        new.rename(path)
    except OSError:
        pass


def main():
    reports, stages = pathlib.Path(sys.argv[1]), sys.argv[2:]
    path = cache()
    known = known_times(path)
    terminal = sys.stderr.isatty()
    said = time.monotonic() - 20
    while not all((reports / f"{stage}.seconds").exists() for stage in stages):
        time.sleep(1)
        if terminal:
            print(f"\r\033[K{line(reports, stages, known)[:os.get_terminal_size(2).columns - 1]}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - said >= 30:
            said = time.monotonic()
            print(line(reports, stages, known), file=sys.stderr, flush=True)
    if terminal:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    note_times(reports, stages, known, path)


if __name__ == "__main__":
    main()
