# SPDX-License-Identifier: MIT
"""TCP relays, on threads: one to the API server that a test can cut, and one from pods to the
machine's loopback interface."""

import contextlib
import ctypes
import json
import os
import socket
import socketserver
import struct
import subprocess
import threading

import tunnel

# --- Cuts -------------------------------------------------------------------------------------
# A relay to the API server that forwards bytes, on threads, until the test cuts it.


class CutHandler(socketserver.BaseRequestHandler):
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
    """`with Cuts(kubeconfig) as cuts:` cuts.config is a kubeconfig whose connections go through
    this relay."""

    def __init__(self, kubeconfig, directory):
        self.tree = json.loads(kubeconfig.read_text())
        self.config = directory / "cuts.kubeconfig"

    def __enter__(self):
        cluster = self.tree["clusters"][0]["cluster"]
        host, _, port = cluster["server"].partition("//")[2].rpartition(":")
        self.server = tunnel.Server(("127.0.0.1", 0), CutHandler)
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
        """Break all connections. Return how many there were."""
        pairs, self.server.pairs = self.server.pairs, []
        for pair in pairs:
            for sock in pair:
                reset(sock)
        return len(pairs)

    def close(self):
        """Break all connections, and refuse new ones until `open` is called."""
        self.server.closed.set()
        self.cut()

    def open(self):
        self.server.closed.clear()


# --- Services ---------------------------------------------------------------------------------
# Lets pods reach servers that listen on the machine's loopback interface: the API server at the
# address of the service `kubernetes`, and others.
#
# This cluster has no proxy for services. Threads forward one port of the node's network namespace.

ADDRESS = ("10.96.0.1", 443)
CLONE_NEWNET = 0x40000000


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        with socket.create_connection(self.server.target, timeout=60) as there:
            tunnel.connect(self.request, there)


def listen_in(namespace, address):
    """Return a socket that listens in a network NAMESPACE (a file). A thread enters the namespace
    to create it."""
    made = []

    def enter():
        with open(namespace, encoding="ascii") as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
                made.append(OSError(ctypes.get_errno(), "setns"))
                return
        made.append(socket.create_server(address))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert isinstance(made[0], socket.socket), made
    return made[0]


class Service:
    """`with Service(cluster):` pods reach the API server as in other clusters. With PORT, they
    reach another server at ADDRESS."""

    def __init__(self, cluster, address=ADDRESS, port=None):
        self.namespace = f"/proc/{cluster.node.containerd.pid}/ns/net"
        self.address = address
        self.target = ("127.0.0.1", port or cluster.ports["apiserver"])

    def __enter__(self):
        subprocess.run(["nsenter", f"--net={self.namespace}", "ip", "address", "add", f"{self.address[0]}/32", "dev", "lo"],
                       check=True, timeout=60, env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})
        self.server = tunnel.Server(self.address, Handler, bind_and_activate=False)
        self.server.socket.close()
        self.server.socket = listen_in(self.namespace, self.address)
        self.server.target = self.target
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(60)
