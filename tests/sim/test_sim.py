# SPDX-License-Identifier: MIT
"""The simulator under sanitizers, and faults that it has to find: each fits the sources, and some, chosen anew each time,
are found.

KXFS_SIM is the build with sanitizers, KXFS_SIM_SEEDS how many histories it plays (default 200), KXFS_SIM_FAULTS how many faults
are put back (default 3; 0: all).
"""

import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def run(*args, **kwargs):
    return subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **kwargs)


def test_each_fits():
    wrong = []
    for path in sorted((HERE / "faults").glob("*.patch")):
        p = run("patch", "-p1", "--dry-run", "--force", "-i", path, cwd=ROOT)
        if p.returncode or path.read_text().startswith(("---", "diff")):
            wrong.append(f"{path.stem}: {p.stdout}")
    assert not wrong, "\n".join(wrong)


def test_some_are_found():
    p = run(HERE / "run", "--faults", os.environ.get("KXFS_SIM_FAULTS", "3"))
    print(p.stdout)
    assert p.returncode == 0, p.stdout


def test_histories_under_sanitizers():
    """The same ones each time, so that no change is refused for a history that has nothing to do with it; tests/soak/run sim
    plays others."""
    p = run(os.environ["KXFS_SIM"], "--kept", "--seeds", os.environ.get("KXFS_SIM_SEEDS", "200"), "--jobs", "2", "--shrink")
    print(p.stdout)
    assert p.returncode == 0, p.stdout
