# SPDX-License-Identifier: MIT
"""Go programs that tests use, built once into the cache that build.py has."""

import fcntl
import hashlib
import subprocess
import sys

import build


def programs(name, folder, *targets, note=""):
    """The directory with the programs of TARGETS (packages, or files of FOLDER, whose go.mod and go.sum hold). They are built if
    they are not there, or if a file of FOLDER that says what to build has changed. NOTE: what is printed before."""
    inputs = [folder / one for one in ("go.mod", "go.sum", *targets) if (folder / one).is_file()]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in inputs)).hexdigest()[:16]
    cache = build.cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    done = cache / f"{name}-{digest}"
    with open(cache / f"lock-{name}", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.is_dir():
            go, env = build.find_go()
            env.update(CGO_ENABLED="0", GOFLAGS="-mod=readonly", GOWORK="off")
            new = cache / f"{name}-new"
            new.mkdir(exist_ok=True)
            print(note, file=sys.stderr, flush=True)
            for target in targets:
                subprocess.run(["nice", go, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", f"{new}/", target],
                               cwd=folder, env=env, check=True, timeout=1800, stdin=subprocess.DEVNULL, stdout=sys.stderr)
            new.rename(done)
    return done
