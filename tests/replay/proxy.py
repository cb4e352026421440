# SPDX-License-Identifier: MIT
"""An HTTP proxy that supports CONNECT, in a thread."""

import socket
import socketserver
import threading

import tunnel


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        words = self.rfile.readline().decode().split()
        while self.rfile.readline().strip():
            pass
        if len(words) < 2 or words[0] != "CONNECT":
            self.wfile.write(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n")
            return
        self.server.asked.append(words[1])
        host, _, port = words[1].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60) as there:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            tunnel.connect(self.connection, there)


class Proxy:
    def __enter__(self):
        self.server = tunnel.Server(("127.0.0.1", 0), Handler)
        self.server.asked = self.asked = []  # HOST:PORT of each CONNECT
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(60)
