# SPDX-License-Identifier: MIT
"""A server of S3: versitygw, whose buckets are directories and whose objects are files.

`python3 gateway.py` builds versitygw (a Go module) into the cache outside the repository, and prints its path."""

import os
import pathlib
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "cluster"))
import gobuild  # noqa: E402

KEY, SECRET, REGION = "kxfs-test", "a+secret/that=nobody:may.see", "us-east-1"


def program():
    return gobuild.programs("versitygw", HERE / "gateway", "github.com/versity/versitygw/cmd/versitygw",
                            note="Building versitygw for the tests; on two cores this takes about 3 minutes.") / "versitygw"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


class Gateway:
    """Gateway(directory) is a context manager. The buckets are the directories in DIRECTORY/data."""

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
