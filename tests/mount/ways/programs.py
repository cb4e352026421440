# SPDX-License-Identifier: MIT
"""Programs that write job files and that Debian does not have: mikefarah's yq, ytt, and write.go. `python3 programs.py` builds
them into the cache outside the repository that tests/cluster/build.py has, and prints where they are."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "cluster"))
import gobuild  # noqa: E402


def programs():
    return gobuild.programs("ways", HERE, "github.com/mikefarah/yq/v4", "carvel.dev/ytt/cmd/ytt", "write.go",
                            note="Building yq and ytt for the tests; on two cores this takes about a minute.")


if __name__ == "__main__":
    print(programs())
