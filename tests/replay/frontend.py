# SPDX-License-Identifier: MIT
"""HTTP/2 in front of an ApiServer: nghttpx, with TLS and as many streams a connection as the real API server allows.
It shields the client's connection from what the ApiServer does to its own."""

import socket
import subprocess
import time

STREAMS = 100  # as kube-apiserver 1.36


class Http2Frontend:
    def __init__(self, server, pki, directory):
        self.server = server
        self.pki = pki
        self.messages = directory / "nghttpx.log"
        self.host = "127.0.0.1"
        self.port = 0
        self.held = None
        self.proc = None

    @property
    def url(self):
        return f"https://{self.host}:{self.port}"

    def __enter__(self):
        # Bind the port as long as it is used, so that no other process gets it; nghttpx shares it.
        self.held = socket.socket()
        self.held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.held.bind((self.host, 0))
        self.port = self.held.getsockname()[1]
        self.proc = subprocess.Popen(
            ["nghttpx", f"--frontend={self.host},{self.port}",
             f"--backend={self.server.host},{self.server.port};;", "--conf=/dev/null",
             f"--frontend-http2-max-concurrent-streams={STREAMS}", "--single-process",
             "--backend-read-timeout=1h", "--frontend-http2-read-timeout=1h", "--no-ocsp",
             f"--errorlog-file={self.messages}", "--accesslog-file=/dev/null",
             str(self.pki.dir / "server.key"), str(self.pki.dir / "server.crt")],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection((self.host, self.port), timeout=5).close()
                return self
            except OSError:
                if self.proc.poll() is not None or time.monotonic() > end:
                    self.__exit__()
                    raise AssertionError(self.messages.read_text()) from None
                time.sleep(0.02)

    def __exit__(self, *exc):
        self.proc.terminate()
        self.proc.wait(60)
        self.held.close()
