# SPDX-License-Identifier: MIT
"""A server of S3 that verifies signatures: versitygw, whose buckets are directories and whose objects are files; and a
proxy before it that answers in its place, cuts, or is slow.

`python3 gateway.py` builds versitygw (a Go module) into the cache outside the repository that tests/cluster/build.py has,
and prints where it is.
"""

import fcntl
import hashlib
import http.client
import http.server
import os
import pathlib
import socket
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "cluster"))
import build  # noqa: E402

MODULE = "github.com/versity/versitygw/cmd/versitygw"
KEY, SECRET, REGION = "kxfs-test", "a+secret/that=nobody:may.see", "us-east-1"
KEYS = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


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
    """with Gateway(directory): its buckets are the directories in DIRECTORY/data. PKI: it speaks TLS."""

    def __init__(self, directory, pki=None):
        self.data = directory / "data"
        for path in (directory, self.data, directory / "side"):
            path.mkdir()
        self.port = free_port()
        tls = ["--cert", pki.dir / "server.crt", "--key", pki.dir / "server.key"] if pki else []
        self.url = f"{'https' if pki else 'http'}://127.0.0.1:{self.port}"
        self.command = [program(), "--port", f"127.0.0.1:{self.port}", "--keep-alive", "--quiet", "--region", REGION, *tls,
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


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.server.front.fault(self.command, self.path)
        if fault == "slow":
            self.server.front.go_on.wait(600)
        if isinstance(fault, tuple):
            status, headers, text = fault
            return self.answer(status, headers, text.encode())
        if fault == "cut":
            self.close_connection = True
            return None
        there = http.client.HTTPConnection("127.0.0.1", self.server.front.port, timeout=60)
        there.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            there.putheader(name, value)
        there.endheaders(body)
        reply = there.getresponse()
        data = reply.read()
        headers = {name: value for name, value in reply.getheaders() if name.lower() not in ("content-length", "connection", "transfer-encoding")}
        there.close()
        if fault == "lost":  # the server has done it, and nobody hears of that
            self.close_connection = True
            return None
        return self.answer(reply.status, headers, data, half=fault == "half")

    do_PUT = do_GET

    def answer(self, status, headers, data, half=False):
        self.send_response_only(status)
        for name, value in {**headers, "Content-Length": len(data)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[:len(data) // 2] if half else data)
        self.close_connection |= half


class Front:
    """with Front(gateway) as front: front.fault(method, path) says what becomes of a request: None, nothing; "cut" before it is
    passed on, "lost" after that, "half" of the answer, "slow" until front.go_on is set, or an answer (status, headers, text)."""

    def __init__(self, gateway):
        self.port = gateway.port
        self.fault = lambda method, path: None
        self.go_on = threading.Event()

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.front = self
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.go_on.set()
        self.server.shutdown()
        self.server.server_close()


if __name__ == "__main__":
    print(program())
