# SPDX-License-Identifier: MIT
"""A server of S3: versitygw, whose buckets are directories and whose objects are files.

`python3 gateway.py` builds versitygw (a Go module) into the cache outside the repository that tests/cluster/build.py has,
and prints where it is.
"""

import fcntl
import hashlib
import os
import pathlib
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "cluster"))
import build  # noqa: E402

MODULE = "github.com/versity/versitygw/cmd/versitygw"
KEY, SECRET, REGION = "kxfs-test", "a+secret/that=nobody:may.see", "us-east-1"


def program():
    """Built when it is not there, or another version is wanted."""
    sums = (HERE / "gateway/go.sum").read_bytes()
    cache = build.cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    done = cache / f"versitygw-{hashlib.sha256(sums).hexdigest()[:16]}"
    with open(cache / "lock-versitygw", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            go, env = build.find_go()
            env.update(CGO_ENABLED="0", GOFLAGS="-mod=readonly", GOWORK="off")
            print("Building versitygw for the tests; on two cores this takes about 3 minutes.", file=sys.stderr, flush=True)
            subprocess.run(["nice", go, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", f"{done}.new", MODULE],
                           cwd=HERE / "gateway", env=env, check=True, timeout=1800, stdin=subprocess.DEVNULL, stdout=sys.stderr)
            os.rename(f"{done}.new", done)
    return done


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


class Gateway:
    """with Gateway(directory): its buckets are the directories in DIRECTORY/data."""

    def __init__(self, directory):
        self.data = directory / "data"
        for path in (directory, self.data, directory / "side"):
            path.mkdir()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.command = [program(), "--port", f"127.0.0.1:{self.port}", "--keep-alive", "--quiet", "--region", REGION,
                        "posix", "--sidecar", directory / "side", self.data]
        self.log = directory / "log"

    def __enter__(self):
        env = {**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
        with open(self.log, "wb") as log:
            self.proc = subprocess.Popen(self.command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def is_up(self):
        assert self.proc.poll() is None, self.log.read_text()
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def __exit__(self, *exc):
        self.proc.kill()
        self.proc.wait(60)


if __name__ == "__main__":
    print(program())
