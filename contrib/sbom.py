#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sbom.py KXFS VERSION: the software bill of materials of a built kxfs, as SPDX 2.3 in JSON, on standard output.

It lists kxfs, each shared library that the program loads (with its Debian package, version and licence), and uthash,
which is compiled in. SOURCE_DATE_EPOCH is the bill's timestamp. image.py does the same for packages that are not
installed.
"""

import datetime
import hashlib
import json
import os
import re
import subprocess
import sys

# The licences of each package's libraries; its own copyright file has the details.
LICENCES = {
    "ca-certificates": "MPL-2.0",
    "coreutils": "GPL-3.0-or-later",
    "libbrotli1": "MIT",
    "libc6": "LGPL-2.1-or-later",
    "libcom-err2": "MIT",
    "libcurl4": "curl",
    "libffi8": "MIT",
    "libfuse3-3": "LGPL-2.1-only",
    "libgmp10": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libgnutls30": "LGPL-2.1-or-later",
    "libgssapi-krb5-2": "MIT",
    "libhogweed6": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libidn2-0": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libjson-c5": "MIT",
    "libk5crypto3": "MIT",
    "libkeyutils1": "LGPL-2.1-or-later",
    "libkrb5-3": "MIT",
    "libkrb5support0": "MIT",
    "libldap-2.5-0": "OLDAP-2.8",
    "libnettle8": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libnghttp2-14": "MIT",
    "libp11-kit0": "BSD-3-Clause",
    "libpsl5": "MIT",
    "librtmp1": "LGPL-2.1-or-later",
    "libsasl2-2": "BSD-3-Clause-Attribution",
    "libssh2-1": "BSD-3-Clause",
    "libssl3": "Apache-2.0",
    "libtasn1-6": "LGPL-2.1-or-later",
    "libunistring2": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libuv1": "MIT",
    "libyaml-0-2": "MIT",
    "libzstd1": "BSD-3-Clause OR GPL-2.0-only",
    "uthash-dev": "BSD-1-Clause",
    "zlib1g": "Zlib",
}


def output(*cmd):
    return subprocess.run(cmd, stdout=subprocess.PIPE, check=True, text=True).stdout


def package_of(path):
    """Return the Debian package of a file, by the path under which it was installed. /lib may have
    become /usr/lib since."""
    for name in (path, os.path.realpath(path), re.sub("^/usr", "", os.path.realpath(path))):
        p = subprocess.run(["dpkg-query", "-S", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                           text=True)
        if p.returncode == 0:
            return p.stdout.split(":")[0]
    raise SystemExit(f"sbom.py: {path} is of no package")


def libraries(program):
    """Return the names of the packages of PROGRAM's libraries."""
    paths = re.findall(r"(/\S+) \(0x", output("ldd", program))
    return sorted({package_of(path) for path in paths})


def installed(name):
    """Return (version, source, architecture) of a package on this machine."""
    found = output("dpkg-query", "-W", "-f", "${Version} ${source:Package} ${Architecture}\n", name)
    return found.split("\n", maxsplit=1)[0].split(" ")


def element(name, version, licence, **more):
    return {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        **more,
    }


def bill(program, version, names, about):
    """Return the bill of materials of PROGRAM with the packages NAMES and uthash. ABOUT returns a
    package's data, like installed()."""
    when = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    with open(program, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    packages = [element("kxfs", version, "MIT", supplier="Organization: The kxfs authors",
                        copyrightText="Copyright (c) 2026 The kxfs authors",
                        checksums=[{"algorithm": "SHA256", "checksumValue": digest}])]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-kxfs")]
    for name in [*names, "uthash-dev"]:
        its_version, source, arch = about(name)
        purl = f"pkg:deb/debian/{name}@{its_version}?arch={arch}"
        packages.append(element(name, its_version, LICENCES.get(name, "NOASSERTION"), sourceInfo=f"Debian source {source}",
                                externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                               "referenceLocator": purl}]))
        kind = {"uthash-dev": "STATIC_LINK", "ca-certificates": "DEPENDS_ON", "coreutils": "DEPENDS_ON"}.get(name, "DYNAMIC_LINK")
        relations.append(("SPDXRef-kxfs", kind, packages[-1]["SPDXID"]))
    return json.dumps({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"kxfs-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/kxfs-{version}-{digest}",
        "creationInfo": {"created": when.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: kxfs-contrib-sbom"]},
        "packages": packages,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations],
    }, indent=1)


if __name__ == "__main__":
    print(bill(*sys.argv[1:], libraries(sys.argv[1]), installed))
