# SPDX-License-Identifier: MIT
"""Passes bytes from one connection to another, for proxies between a client and a server."""

import contextlib
import socket
import socketserver
import threading


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


def connect(here, there):
    """Pass bytes on in both directions until both sides have ended."""
    there.settimeout(None)
    back = threading.Thread(target=pump, args=(there, here), daemon=True)
    back.start()
    pump(here, there)
    back.join(60)


def pump(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for sock in (source, sink):
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
