# SPDX-License-Identifier: MIT
"""Programs that write job files and that Debian does not have: mikefarah's yq, ytt, and write.go. `python3 programs.py` builds
them into the cache outside the repository that tests/cluster/build.py has, and prints where they are."""

import fcntl
import hashlib
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "cluster"))
import build  # noqa: E402

PACKAGES = ["github.com/mikefarah/yq/v4", "carvel.dev/ytt/cmd/ytt"]


def programs():
    """The directory of the programs; builds them when they are not there, or other versions are wanted."""
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in ("go.mod", "go.sum", "write.go")))
    cache = build.cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    done = cache / f"ways-{digest.hexdigest()[:16]}"
    with open(cache / "lock-ways", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            go, env = build.find_go()
            env.update(CGO_ENABLED="0", GOFLAGS="-mod=readonly", GOWORK="off")
            new = cache / "ways-new"
            new.mkdir(exist_ok=True)
            print("Building yq and ytt for the tests; on two cores this takes about a minute.", file=sys.stderr, flush=True)
            for package in (*PACKAGES, "write.go"):
                subprocess.run(["nice", go, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", f"{new}/", package],
                               cwd=HERE, env=env, check=True, timeout=1800, stdin=subprocess.DEVNULL, stdout=sys.stderr)
            new.rename(done)
    return done


if __name__ == "__main__":
    print(programs())
