# SPDX-License-Identifier: MIT
"""The simulator with sanitizers, and faults that the simulator must find. All fault patches must apply to the sources,
and each run applies some random ones.

KXFS_SIM is the build with sanitizers. KXFS_SIM_SEEDS is the number of new histories (default 200), KXFS_SIM_FROM their
first seed (random by default), and KXFS_SIM_FAULTS the number of fault patches to apply (default 3; 0: all).
"""

import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess

import patches

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def run(*args, **kwargs):
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **{"input": "", **kwargs})


def test_each_fits():
    wrong = []
    for name, fault in patches.read("sim").items():
        p = run("patch", "-p1", "-F0", "--dry-run", "--force", cwd=ROOT, input=fault)
        if p.returncode or not patches.head(fault):
            wrong.append(f"{name}: {p.stdout}")
    assert not wrong, "\n".join(wrong)


def test_some_are_found():
    p = run(HERE / "run", "--faults", os.environ.get("KXFS_SIM_FAULTS", "3"))
    print(p.stdout)
    assert p.returncode == 0, p.stdout


def test_histories_under_sanitizers(record_property):
    """Play the seeds that have found something before, and new ones. A seed that fails is added to the file of
    seeds: its history is always the same, so the failure can be repeated."""
    count = int(os.environ.get("KXFS_SIM_SEEDS", "200"))
    first = int(os.environ.get("KXFS_SIM_FROM", random.randrange(1 << 31)))
    record_property("seeds", f"{first} to {first + count - 1}")
    print(f"seeds {first} to {first + count - 1}")
    seeds = str(HERE / "seeds")
    p = run(os.environ["KXFS_SIM"], "--kept", seeds, "--keep", seeds, "--from", str(first), "--seeds", str(count), "--jobs", "2",
            "--shrink")
    print(p.stdout)
    assert p.returncode == 0, f"seeds {first} to {first + count - 1}\n{p.stdout}"


def test_kept_seeds_are_played(tmp_path):
    """Each seed of the file is played, and then the requested number of new ones."""
    (tmp_path / "seeds").write_text("# a comment\n5 # of it\n7\n")
    p = run(os.environ["KXFS_SIM"], "--kept", str(tmp_path / "seeds"), "--seeds", "1")
    assert p.returncode == 0 and re.search("^3 histories, 0 failed;", p.stdout, re.M), p.stdout
    p = run(os.environ["KXFS_SIM"], "--kept", str(tmp_path / "none"))
    assert p.returncode == 2


def test_failing_seed_is_kept(tmp_path):
    """A seed that fails is added to the file with the reason of the failure. If the file has it already, it is not
    added again."""
    seeds = tmp_path / "seeds"
    seeds.write_text("1 # known\n")
    with subprocess.Popen([os.environ["KXFS_SIM"], "--keep", seeds, "--minutes", "1"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as p:
        while len(seeds.read_text().splitlines()) < 3 and p.poll() is None:
            for child in pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split():
                with contextlib.suppress(ProcessLookupError):  # the history has ended
                    os.kill(int(child), signal.SIGKILL)
        p.terminate()
    lines = seeds.read_text().splitlines()
    assert lines[:3] == ["1 # known", "2 # Killed", "3 # Killed"], lines


def test_minutes():
    """Histories are played until the time is over."""
    p = run(os.environ["KXFS_SIM"], "--minutes", "0.1", "--jobs", "2", timeout=120)
    match = re.search(r"^(\d+) histories, 0 failed", p.stdout, re.M)
    assert p.returncode == 0 and match and int(match[1]) > 1, p.stdout


def test_help():
    for word in ("--help", "-h"):
        p = run(HERE / "run", word)
        assert p.returncode == 0 and "tests/sim/run --minutes M" in p.stdout
