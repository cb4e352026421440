# SPDX-License-Identifier: MIT
"""A way to the API server that can be cut: passes bytes on, in threads, until the test says otherwise."""

import contextlib
import json
import socket
import socketserver
import struct
import threading

import tunnel


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        if self.server.closed.is_set():
            return reset(self.request)
        with contextlib.suppress(OSError), socket.create_connection(self.server.target, timeout=60) as there:
            self.server.pairs.append((self.request, there))
            tunnel.connect(self.request, there)


def reset(sock):
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.shutdown(socket.SHUT_RDWR)


class Cuts:
    """with Cuts(kubeconfig) as cuts: cuts.config goes through here, as kubeconfig does without."""

    def __init__(self, kubeconfig, directory):
        self.tree = json.loads(kubeconfig.read_text())
        self.config = directory / "cuts.kubeconfig"

    def __enter__(self):
        cluster = self.tree["clusters"][0]["cluster"]
        host, _, port = cluster["server"].partition("//")[2].rpartition(":")
        self.server = tunnel.Server(("127.0.0.1", 0), Handler)
        self.server.target = (host, int(port))
        self.server.pairs = []
        self.server.closed = threading.Event()
        cluster["server"] = f"https://127.0.0.1:{self.server.server_address[1]}"
        self.config.write_text(json.dumps(self.tree))
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()
        self.cut()
        self.thread.join(60)

    def cut(self):
        """All connections that there are; how many of them lived."""
        pairs, self.server.pairs = self.server.pairs, []
        for pair in pairs:
            for sock in pair:
                reset(sock)
        return len(pairs)

    def close(self):
        """Nobody gets through any more, until `open`."""
        self.server.closed.set()
        self.cut()

    def open(self):
        self.server.closed.clear()
