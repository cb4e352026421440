# SPDX-License-Identifier: MIT
"""Programs that tests use, written in Go or other languages, built once into the cache of build.py.
"""

import fcntl
import hashlib
import subprocess
import sys

import build


def cached(name, inputs, fill):
    """Return the directory NAME-DIGEST in the cache of build.py. DIGEST depends on the contents of
    the files INPUTS. FILL(directory) fills the directory once. If FILL was interrupted, the next
    call continues with what it has left."""
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
    """Return the directory with the programs of TARGETS (packages or files of FOLDER, which
    contains go.mod and go.sum). Build them if they are missing, or if a relevant file of FOLDER has
    changed. NOTE is printed before a build."""

    def fill(new):
        go, env = build.find_go()
        env.update(CGO_ENABLED="0", GOFLAGS="-mod=readonly", GOWORK="off", GOGC="400")
        print(note, file=sys.stderr, flush=True)
        for target in targets:
            subprocess.run(["nice", go, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", f"{new}/", target],
                           cwd=folder, env=env, check=True, timeout=1800, stdin=subprocess.DEVNULL, stdout=sys.stderr)

    return cached(name, [folder / one for one in ("go.mod", "go.sum", *targets) if (folder / one).is_file()], fill)
