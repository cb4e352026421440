# SPDX-License-Identifier: MIT
"""Each fuzz target searches for a few seconds, from its corpus. KXFS_BUILD is a build with
-Dfuzz=true. What a target finds belongs into its corpus, so that every build replays it.
The search is the same each time, as far as it gets, so that what it finds has come with a change;
KXFS_FUZZ_SEED=0 searches elsewhere each time."""

import os
import pathlib
import resource
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
SECONDS = int(os.environ.get("KXFS_FUZZ_SECONDS", "20"))
SEED = int(os.environ.get("KXFS_FUZZ_SEED", "1"))
SLOW = 10  # seconds of the processor's time that an input may take
TARGETS = sorted(path.stem.removeprefix("fuzz-") for path in HERE.glob("fuzz-*.c"))


def test_there_are_targets():
    assert TARGETS


def is_slow(binary, path):
    """Does the input take long by itself, or did only the machine stall when it was tried?"""
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    subprocess.run([binary, path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False, timeout=200)
    return used() - before > SLOW


@pytest.mark.parametrize("name", TARGETS)
def test_search(name, tmp_path):
    corpus = tmp_path / "corpus"
    shutil.copytree(HERE / "corpus" / name, corpus)
    binary = pathlib.Path(os.environ["KXFS_BUILD"]) / "tests/fuzz" / f"fuzz-{name}"
    p = subprocess.run(
        [binary, f"-seed={SEED}", f"-max_total_time={SECONDS}", "-timeout=100", f"-report_slow_units={SLOW}",
         "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={tmp_path}/", corpus],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        timeout=SECONDS * 5 + 300)
    text = p.stdout.decode(errors="replace")
    found = [f"{path.name}: {path.read_bytes()!r}" for path in tmp_path.iterdir()
             if path.is_file() and (not path.name.startswith("slow-unit-") or is_slow(binary, path))]
    assert p.returncode == 0 and not found, "\n".join(found) + "\n" + text[-6000:]
    assert "stat::number_of_executed_units: 0" not in text
    print(f"{SECONDS} seconds of {name}")
