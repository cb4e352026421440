#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The API server that test-capture_log.c fetches logs from: pods that print, and a kubelet that is asked for it.

usage: log_server.py DIR SEED. The first line of the output is the port. Pod NAME does what its name says, up to
the first "-" (see Pod.life); when it has ended, DIR/NAME holds what it printed. It ends when its input does."""

import http.server
import json
import os
import pathlib
import random
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "replay"))
import podlog  # noqa: E402

DIR = pathlib.Path(sys.argv[1])
SEED = int(sys.argv[2])
MESSAGE = b"unable to retrieve container logs for containerd://0123456789abcdef"
NO_POD = (b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \\"none\\" not found",'
          b'"reason":"NotFound","details":{"name":"none","kind":"pods"},"code":404}')
# Of a kubelet, passed on by the API server.
NOT_KNOWN = (b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find '
             b'the requested resource ( pods/log unknown-1)","reason":"NotFound","details":{"name":"unknown-1",'
             b'"kind":"pods/log"},"code":404}')


class Pod:
    """A pod with one container. RUNS are the logs of its runs, the last of which is the present one."""

    def __init__(self, name):
        self.name = name
        self.random = random.Random(f"{SEED} {name}")
        self.faults = random.Random(f"{SEED} {name} faults")
        self.runs = [podlog.Log()]
        self.asked = 0
        self.cut_at = 0.0
        self.begun = threading.Event()
        threading.Thread(target=self.life, daemon=True).start()

    def life(self):
        self.begun.wait()
        getattr(self, "do_" + self.name.split("-")[0])()
        self.out(self.name, self.runs[0])

    def out(self, name, log):
        temp = DIR / f".{name}"
        temp.write_bytes(log.data())
        temp.rename(DIR / name)

    def line(self):
        r = self.random
        kind = r.random()
        if kind < 0.3:
            return b"the same line\n"
        if kind < 0.35:
            return r.randbytes(r.randrange(40000)).replace(b"\n", b"\0") + b"\n"
        if kind < 0.4:
            return b"\n"
        return r.randbytes(r.randrange(200)).replace(b"\n", b"\r") + b"\n"

    # Lines of any bytes, many at one time, some long, for some seconds; the last without a newline.
    def do_any(self):
        log = self.runs[0]
        end = time.monotonic() + 4
        while time.monotonic() < end:
            for _ in range(self.random.randrange(60)):
                log.append(self.line())
            time.sleep(self.random.random() * 0.2)
        log.append(b"the end")
        log.end()

    # Prints, and is rotated, while nobody can listen.
    def do_rotated(self):
        log = self.runs[0]
        for i in range(300):
            log.append(f"line {i}\n")
        time.sleep(1.5)
        self.cut_at = time.monotonic()
        for i in range(300, 310):
            log.append(f"line {i}\n")
        log.rotate()
        time.sleep(1.1)
        log.append("after\n")
        time.sleep(2)
        log.end()

    # Fails, and is run again, while nobody can listen.
    def do_restarted(self):
        log = self.runs[0]
        log.append("one\n")
        time.sleep(1.5)
        self.cut_at = time.monotonic()
        log.append("two\nfailed")
        log.end()
        self.runs.append(podlog.Log())
        self.runs[1].append("the next run\n")

    def do_late(self):
        time.sleep(1.5)
        self.runs[0].append("at last\n")
        self.runs[0].end()

    # Its stream breaks, and after that nothing can be had.
    def do_lost(self):
        self.runs[0].append("begin\n")
        time.sleep(0.5)
        self.cut_at = time.monotonic()

    # The same, but its stream ends properly before.
    def do_last(self):
        self.runs[0].append("begin\n")
        self.runs[0].end()

    # Its stream ends properly, since the kubelet is started anew, which does not know the pod at first.
    def do_unknown(self):
        self.runs[0].append("begin\n")
        time.sleep(0.5)
        self.cut_at = time.monotonic()
        self.runs[0].append("end\n")
        self.runs[0].end()

    # Its stream breaks, since the API server is started anew, which denies everything at first.
    def do_denied(self):
        self.runs[0].append("begin\n")
        time.sleep(0.5)
        self.cut_at = time.monotonic()
        self.runs[0].append("end\n")

    # A lot at once.
    def do_much(self):
        log = self.runs[0]
        for _ in range(20):
            log.append(self.random.randbytes(1 << 20).replace(b"\0", b"\n"))
        log.end()

    def do_quiet(self):
        self.runs[0].append("here I am\n")
        while not (DIR / f"{self.name}.go").exists():
            time.sleep(0.02)
        self.runs[0].append("bye\n")
        self.runs[0].end()


PODS = {}
LOCK = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0

    def log_message(self, *args):
        pass

    def text(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = {k: v[0] for k, v in urllib.parse.parse_qs(url.query).items()}
        parts = url.path.split("/")
        if "fieldSelector" in query:
            name = query["fieldSelector"].removeprefix("metadata.name=")
            pod = PODS.get(name)
            self.text(200, json.dumps({"kind": "PodList", "items": [{"metadata": {"uid": name}, "status": {
                "containerStatuses": [{"name": "main", "restartCount": len(pod.runs) - 1 if pod else 0,
                                       "state": {"running": {}}}]}}]}).encode())
            return
        assert parts[:5] == ["", "api", "v1", "namespaces", "team"] and parts[5] == "pods" and parts[7] == "log", url
        assert query["container"] == "main" and query["timestamps"] == "true"
        name = parts[6]
        with LOCK:
            pod = PODS.get(name) or PODS.setdefault(name, Pod(name))
        pod.asked += 1
        with open(DIR / f"{name}.asked", "a") as out:
            out.write(url.query + "\n")
        try:
            self.serve(pod, query)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def serve(self, pod, query):
        kind = pod.name.split("-")[0]
        if kind == "none":
            self.text(404, NO_POD)
            return
        pod.begun.set()
        if kind == "late" and not pod.runs[0].entries:
            self.text(400, b'{"kind":"Status","message":"container \\"main\\" in pod \\"late\\" is waiting to start: '
                           b'ContainerCreating","reason":"BadRequest","code":400}')
            return
        if kind in ("lost", "last") and pod.asked > 1:
            self.text(200, MESSAGE)
            return
        if kind == "unknown" and 1 < pod.asked < 4:
            self.text(404, NOT_KNOWN)
            return
        if kind == "denied" and pod.asked == 2:
            self.text(403, b'{"kind":"Status","message":"pods \\"denied\\" is forbidden: User \\"ada\\" cannot get '
                           b'resource \\"pods/log\\"","reason":"Forbidden","code":403}')
            return
        if query.get("previous") == "true":
            if len(pod.runs) < 2:
                self.text(400, b'{"kind":"Status","message":"previous terminated container \\"main\\" in pod not found",'
                               b'"reason":"BadRequest","code":400}')
                return
            log = pod.runs[-2]
        else:
            log = pod.runs[-1]
        if kind == "any" and self.fault(pod):
            return
        self.stream(pod, log, query)

    def fault(self, pod):
        what = pod.faults.random() * (4 if pod.runs[0].ended else 1)
        if what < 0.1:
            self.text(500, b"oops")
        elif what < 0.15:
            self.text(200, MESSAGE)
        elif what < 0.2:
            self.send_response(429)
            self.send_header("Retry-After", "1")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif what < 0.25:
            self.close_connection = True
        else:
            return False
        return True

    def stream(self, pod, log, query):
        since = podlog.parse_since(query["sinceTime"]) if "sinceTime" in query else None
        tail, limit = (int(query[key]) if key in query else None for key in ("tailLines", "limitBytes"))
        reader = podlog.Reader(log, True, since, tail, limit)
        follow = query.get("follow") == "true"
        begun = time.monotonic()
        left = pod.faults.randrange(1 << 19) if pod.name.startswith("any") and pod.faults.random() < 0.6 else None
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while True:
            data, ended = reader.read()
            if pod.cut_at and begun < pod.cut_at:
                if pod.name.startswith("unknown"):
                    break
                self.close_connection = True  # broken
                return
            if left is not None and len(data) >= left:
                data = data[:left]
            if left is not None:
                left -= len(data)
            while data:
                n = pod.faults.randrange(1, 100000)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data[:n]), data[:n]))
                data = data[n:]
            if left == 0:
                if not follow or pod.faults.random() < 0.5:
                    self.close_connection = True
                    return
                break  # a proper end that means nothing
            if ended or not follow:
                break
            time.sleep(0.02)
        self.wfile.write(b"0\r\n\r\n")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    os._exit(0)


main()
