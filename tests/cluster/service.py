# SPDX-License-Identifier: MIT
"""The way from pods to a server that listens on the machine's loopback: to the API server at the address of the service
`kubernetes`, and to others.

There is no proxy of services in this cluster; one port, in the node's network namespace, is passed on by threads.
"""

import ctypes
import os
import socket
import socketserver
import subprocess
import threading

import tunnel

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
