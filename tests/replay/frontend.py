# SPDX-License-Identifier: MIT
"""Parts between a client and an ApiServer: certificates, HTTP/2, a proxy."""

import pathlib
import socket
import socketserver
import ssl
import subprocess
import threading
import time

import tunnel


class Pki:
    """Temporary certificates, created by openssl: a CA, a server, and clients whose CN is their user name."""

    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        self.dir.mkdir(mode=0o700, exist_ok=True)
        self.ca = self.dir / "ca.crt"
        self._key("ca")
        self._run("req", "-x509", "-new", "-key", self._path("ca.key"), "-out", self.ca, "-days", "2",
                  "-subj", "/CN=kxfs test CA", "-addext", "basicConstraints=critical,CA:TRUE")
        self.issue("server", "kube-apiserver", "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.test")

    def issue(self, name, user, extension=""):
        """Issue a certificate for USER: NAME.crt and the key NAME.key. Return their paths."""
        self._key(name)
        self._run("req", "-new", "-key", self._path(f"{name}.key"), "-out", self._path(f"{name}.csr"),
                  "-subj", f"/CN={user}")
        extensions = self._path(f"{name}.ext")
        extensions.write_text(extension + "\n")
        self._run("x509", "-req", "-in", self._path(f"{name}.csr"), "-CA", self.ca, "-CAkey",
                  self._path("ca.key"), "-CAcreateserial", "-days", "2", "-extfile", extensions,
                  "-out", self._path(f"{name}.crt"))
        return self._path(f"{name}.crt"), self._path(f"{name}.key")

    def server_context(self):
        """Return a TLS context that asks for a client certificate, but also accepts clients without one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._path("server.crt"), self._path("server.key"))
        context.load_verify_locations(self.ca)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _path(self, name):
        return self.dir / name

    def _key(self, name):
        self._run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self._path(f"{name}.key"))

    @staticmethod
    def _run(*args):
        p = subprocess.run(["openssl", *map(str, args)], stdin=subprocess.DEVNULL, check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        assert p.returncode == 0, p.stdout


STREAMS = 100  # the limit of kube-apiserver 1.36


class Http2Frontend:
    """HTTP/2 in front of an ApiServer: nghttpx with TLS, which allows as many streams per connection as the real API
    server. If the ApiServer ends its connections, those of the client remain."""

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
        # Keep the port bound, so that no other process gets it. nghttpx shares the port.
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
    """An HTTP proxy that supports CONNECT, in a thread."""

    def __enter__(self):
        self.server = tunnel.Server(("127.0.0.1", 0), Handler)
        self.server.asked = self.asked = []  # HOST:PORT of each CONNECT request
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(60)
