# SPDX-License-Identifier: MIT
"""Ways to the API server and to other servers that pass bytes on, in threads: one that can be cut, one from pods to the
machine's loopback."""

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
# A way to the API server that can be cut: passes bytes on, in threads, until the test says otherwise.


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
    """with Cuts(kubeconfig) as cuts: cuts.config goes through here, as kubeconfig does without."""

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


# --- Services ---------------------------------------------------------------------------------
# The way from pods to a server that listens on the machine's loopback: to the API server at the address of the service
# `kubernetes`, and to others.
#
# There is no proxy of services in this cluster; one port, in the node's network namespace, is passed on by threads.

ADDRESS = ("10.96.0.1", 443)
CLONE_NEWNET = 0x40000000


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        with socket.create_connection(self.server.target, timeout=60) as there:
            tunnel.connect(self.request, there)


def listen_in(namespace, address):
    """A socket that listens in a network NAMESPACE (a file): a thread that has entered it makes it."""
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
    """with Service(cluster): pods reach the API server as they do elsewhere. PORT: another server, at ADDRESS."""

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
