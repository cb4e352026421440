# SPDX-License-Identifier: MIT
"""An HTTP proxy that knows CONNECT, in a thread."""

import contextlib
import socket
import socketserver
import threading


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
            there.settimeout(None)
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=pump, args=(there, self.connection), daemon=True)
            back.start()
            pump(self.connection, there)
            back.join(60)


def pump(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for sock in (source, sink):
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


class Proxy:
    def __enter__(self):
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.asked = self.asked = []  # HOST:PORT of each CONNECT
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(60)
