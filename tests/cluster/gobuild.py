# SPDX-License-Identifier: MIT
"""Programs that tests use, of Go and of others, made once in the cache that build.py has."""

import fcntl
import hashlib
import subprocess
import sys

import build


def cached(name, inputs, fill):
    """The directory NAME-DIGEST in the cache that build.py has, which FILL(directory) makes once for these contents of the files
    INPUTS. What FILL has left when it was cut off is there when it is tried again."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in inputs)).hexdigest()[:16]
    cache = build.cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    done = cache / f"{name}-{digest}"
    with open(cache / f"lock-{name}", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.is_dir():
            new = cache / f"{name}-new"
            new.mkdir(exist_ok=True)
            fill(new)
            new.rename(done)
    return done


def programs(name, folder, *targets, note=""):
    """The directory with the programs of TARGETS (packages, or files of FOLDER, whose go.mod and go.sum hold). They are built if
    they are not there, or if a file of FOLDER that says what to build has changed. NOTE: what is printed before."""

    def fill(new):
        go, env = build.find_go()
        env.update(CGO_ENABLED="0", GOFLAGS="-mod=readonly", GOWORK="off", GOGC="400")
        print(note, file=sys.stderr, flush=True)
        for target in targets:
            subprocess.run(["nice", go, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", f"{new}/", target],
                           cwd=folder, env=env, check=True, timeout=1800, stdin=subprocess.DEVNULL, stdout=sys.stderr)

    return cached(name, [folder / one for one in ("go.mod", "go.sum", *targets) if (folder / one).is_file()], fill)
