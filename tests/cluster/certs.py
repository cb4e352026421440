# SPDX-License-Identifier: MIT
"""Certificates of the tests' cluster, by openssl: one authority, P-256 keys."""

import subprocess


class Authority:
    """A certificate authority in DIRECTORY: ca.crt, ca.key, NAME.crt, NAME.key."""

    def __init__(self, directory):
        self.dir = directory
        self.dir.mkdir()
        self.ca = directory / "ca.crt"
        self.key("ca")
        self.openssl("req", "-x509", "-new", "-key", "ca.key", "-out", "ca.crt", "-days", "30",
                     "-subj", "/CN=kxfs tests")

    def openssl(self, *args):
        p = subprocess.run(["openssl", *args], cwd=self.dir, check=False, capture_output=True,
                           text=True, timeout=60)
        if p.returncode:
            raise RuntimeError(f"openssl {args}: {p.stderr}")

    def key(self, name):
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")

    def make(self, name, user, groups=(), hosts=()):
        """(certificate, key) of USER, for a client and for a server on HOSTS; PEM files."""
        self.key(name)
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        extensions = ["extendedKeyUsage=clientAuth,serverAuth"]
        if hosts:
            kinds = (f"{'IP' if host[0].isdigit() else 'DNS'}:{host}" for host in hosts)
            extensions.append(f"subjectAltName={','.join(kinds)}")
        (self.dir / f"{name}.ext").write_text("\n".join(extensions) + "\n")
        self.openssl("req", "-new", "-key", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                     "-CAcreateserial", "-days", "30", "-extfile", f"{name}.ext",
                     "-out", f"{name}.crt")
        return self.dir / f"{name}.crt", self.dir / f"{name}.key"
