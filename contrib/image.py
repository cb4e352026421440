#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes an image for contrib/package. The image's programs may be for another architecture.

    image.py rootfs KXFS VERSION SYSROOT DIRECTORY    fill DIRECTORY with KXFS and what it needs; print the licences
    image.py bill KXFS VERSION SYSROOT PACKAGE...     print the bill of materials of KXFS with these packages
    image.py index LAYOUT NAME VERSION                combine the images of an OCI layout, one per architecture, to
                                                      NAME:VERSION and NAME:latest

SYSROOT was unpacked by mmdebstrap, and has the package files in var/cache/apt/archives. DIRECTORY gets the program,
test(1) of coreutils for probes, their libraries, the certificates of Debian's ca-certificates, and for each package its
copyright file and its row in the bill of materials.
"""

import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys

import sbom

USER = 65532
FILES = {
    "etc/passwd": f"root:x:0:0:root:/:/sbin/nologin\nkxfs:x:{USER}:{USER}:kxfs:/state:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nkxfs:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


def needed(program):
    """Return (the names of the libraries, the loader) that an ELF file needs."""
    dump = sbom.output("readelf", "-W", "-d", "-l", program)
    loader = re.search(r"Requesting program interpreter: (\S+)\]", dump)
    return re.findall(r"\(NEEDED\).*\[(\S+)\]", dump), loader and loader[1]


def find(sysroot, triplet, name):
    for folder in (f"usr/lib/{triplet}", f"lib/{triplet}"):
        if (sysroot / folder / name).exists():
            return sysroot / folder / name
    raise SystemExit(f"image.py: {name} is not in {sysroot}")


class Archives:
    """The packages that were unpacked into SYSROOT: the owner of each file, and their metadata."""

    def __init__(self, sysroot):
        self.about_, self.owner = {}, {}
        for path in sorted((sysroot / "var/cache/apt/archives").glob("*.deb")):
            fields = sbom.output("dpkg-deb", "-f", path, "Package", "Version", "Source", "Architecture")
            control = dict(line.split(": ", 1) for line in fields.splitlines())
            name = control["Package"]
            self.about_[name] = control["Version"], control.get("Source", name).split(" ")[0], control["Architecture"]
            if not name.endswith("-dev"):
                listed = subprocess.run(["dpkg-deb", "-c", path], stdout=subprocess.PIPE, check=True, text=True).stdout
                self.owner.update((file, name) for file in re.findall(r" \./(\S*\.so\S*)", listed))

    def about(self, name):
        return self.about_[name]


def rootfs(program, version, sysroot, top):
    sysroot, top = pathlib.Path(sysroot), pathlib.Path(top)
    for name in ("usr/bin", "usr/lib64", "usr/share/licenses/kxfs", "usr/share/doc/kxfs", "etc/ssl/certs", "state", "tmp"):
        (top / name).mkdir(parents=True)
    (top / "lib").symlink_to("usr/lib")
    (top / "lib64").symlink_to("usr/lib64")
    shutil.copy(program, top / "usr/bin/kxfs")
    shutil.copy(sysroot / "usr/bin/test", top / "usr/bin/test")
    names, loader = needed(program)
    triplet = (sysroot / loader[1:]).readlink().parent.name
    libraries = top / "usr/lib" / triplet
    libraries.mkdir(parents=True)
    archives, packages, done = Archives(sysroot), {"ca-certificates", "coreutils"}, set()
    names += needed(top / "usr/bin/test")[0]
    while names:
        name = names.pop()
        if name not in done:
            done.add(name)
            path = find(sysroot, triplet, name)
            shutil.copy(path, libraries / name)
            packages.add(archives.owner[str(path.relative_to(sysroot))])
            names += needed(path)[0]
    (top / loader[1:]).symlink_to(f"/usr/lib/{triplet}/{pathlib.Path(loader).name}")
    certificates = sorted((sysroot / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    (top / "etc/ssl/certs/ca-certificates.crt").write_bytes(b"".join(path.read_bytes() for path in certificates))
    for name, text in FILES.items():
        (top / name).write_text(text)
    shutil.copy(pathlib.Path(__file__).parent.parent / "LICENSE", top / "usr/share/licenses/kxfs/LICENSE")
    for name in sorted(packages | {"uthash-dev"}):
        shutil.copy(sysroot / "usr/share/doc" / name / "copyright", top / "usr/share/licenses/kxfs" / name)
    (top / "usr/share/doc/kxfs/kxfs.spdx.json").write_text(sbom.bill(program, version, sorted(packages), archives.about) + "\n")
    licences = {"MIT", *(sbom.LICENCES[name] for name in (*packages, "uthash-dev"))}
    print(" AND ".join(sorted(f"({one})" if " " in one else one for one in licences)))


def bill(program, version, sysroot, *packages):
    print(sbom.bill(program, version, packages, Archives(pathlib.Path(sysroot)).about))


def index(layout, name, version):
    """Turn the manifests of all architectures into one index, and make index.json name only this
    index."""
    layout = pathlib.Path(layout)
    manifests = []
    for entry in json.loads((layout / "index.json").read_text())["manifests"]:
        digest = json.loads((layout / "blobs" / entry["digest"].replace(":", "/")).read_text())["config"]["digest"]
        config = json.loads((layout / "blobs" / digest.replace(":", "/")).read_text())
        manifests.append({"mediaType": entry["mediaType"], "digest": entry["digest"], "size": entry["size"],
                          "platform": {"architecture": config["architecture"], "os": config["os"]}})
    manifests.sort(key=lambda manifest: manifest["platform"]["architecture"])
    kind = "application/vnd.oci.image.index.v1+json"
    data = json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": manifests}).encode()
    digest = hashlib.sha256(data).hexdigest()
    (layout / "blobs/sha256" / digest).write_bytes(data)
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [{
        "mediaType": kind, "digest": f"sha256:{digest}", "size": len(data),
        "annotations": {"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": f"{name}:{tag}"},
    } for tag in (version, "latest")]}))


if __name__ == "__main__":
    {"rootfs": rootfs, "bill": bill, "index": index}[sys.argv[1]](*sys.argv[2:])
