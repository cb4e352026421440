# SPDX-License-Identifier: MIT
"""Each fuzz target searches for a few seconds, from its corpus. KXFS_BUILD is a build with
-Dfuzz=true. What a target finds belongs into its corpus, so that every build replays it."""

import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
SECONDS = int(os.environ.get("KXFS_FUZZ_SECONDS", "20"))
TARGETS = sorted(path.stem.removeprefix("fuzz-") for path in HERE.glob("fuzz-*.c"))


def test_there_are_targets():
    assert TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_search(name, tmp_path):
    corpus = tmp_path / "corpus"
    shutil.copytree(HERE / "corpus" / name, corpus)
    binary = pathlib.Path(os.environ["KXFS_BUILD"]) / "tests/fuzz" / f"fuzz-{name}"
    p = subprocess.run(
        [binary, f"-max_total_time={SECONDS}", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1",
         f"-artifact_prefix={tmp_path}/", corpus],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        timeout=SECONDS * 5 + 300)
    text = p.stdout.decode(errors="replace")
    found = [f"{path.name}: {path.read_bytes()!r}" for path in tmp_path.iterdir() if path.is_file()]
    assert p.returncode == 0 and not found, "\n".join(found) + "\n" + text[-6000:]
    assert "stat::number_of_executed_units: 0" not in text
