# SPDX-License-Identifier: MIT
"""Throwaway certificates, made by openssl: a CA, a server, and clients whose CN is their user."""

import pathlib
import ssl
import subprocess


class Pki:
    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        self.dir.mkdir(mode=0o700, exist_ok=True)
        self.ca = self.dir / "ca.crt"
        self._key("ca")
        self._run("req", "-x509", "-new", "-key", self._path("ca.key"), "-out", self.ca, "-days", "2",
                  "-subj", "/CN=kxfs test CA", "-addext", "basicConstraints=critical,CA:TRUE")
        self.issue("server", "kube-apiserver", "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.test")

    def issue(self, name, user, extension=""):
        """Issue a certificate and key NAME.crt, NAME.key for USER. Return their paths."""
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
        """Request a client certificate, and accept a client without one."""
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
