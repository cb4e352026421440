# SPDX-License-Identifier: MIT
"""Programs that write job files and that Debian does not package: mikefarah's yq, ytt and ways/write.go, which are
written in Go; js-yaml, mustache and prettier of npm. `python3 programs.py` builds or fetches them into the cache of
tests/cluster/build.py, outside the repository, and prints their paths."""

import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
WAYS = HERE / "ways"
sys.path.append(str(HERE.parent / "cluster"))
import build  # noqa: E402
import gobuild  # noqa: E402


def programs():
    return gobuild.programs("ways", WAYS, "github.com/mikefarah/yq/v4", "carvel.dev/ytt/cmd/ytt", "write.go",
                            note="Building yq and ytt for the tests; on two cores this takes about a minute.")


def need(program, group):
    """Install Debian's packages of GROUP unless the machine has PROGRAM already."""
    if not shutil.which(program):
        subprocess.run([build.ROOT / "contrib/packages", group], check=True, stdout=sys.stderr, timeout=1200)


def node_programs():
    """Return the directory with the programs of npm."""
    need("npm", "node")
    files = [WAYS / "package.json", WAYS / "package-lock.json"]

    def fill(new):
        for path in files:
            shutil.copy(path, new)
        subprocess.run(["npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=new, check=True,
                       timeout=1200, stdin=subprocess.DEVNULL, stdout=sys.stderr)

    return gobuild.cached("node", files, fill) / "node_modules/.bin"


if __name__ == "__main__":
    print(programs())
    print(node_programs())
