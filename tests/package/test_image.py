# SPDX-License-Identifier: MIT
"""The image: what it says of itself, and that the program in it runs by what is in it alone, as a user without rights.

That the same tree makes the same bytes is for test_they_are_reproducible of test_packages.py.
"""

import json
import os
import re
import shutil

import harness
import pytest
from test_packages import VERSION, built

pytestmark = pytest.mark.timeout(1500)  # with all that contrib/package builds before
CPUS = {"amd64": "x86_64", "arm64": "aarch64"}


@pytest.fixture(scope="module")
def archive(packages):
    return f"oci-archive:{built(packages, f'kxfs-{VERSION}-image.tar')}:{VERSION}"


@pytest.fixture(scope="module", params=CPUS)
def image(request, archive, tmp_path_factory):
    """(architecture, what its configuration says, its root), by programs that know nothing of how it was made."""
    top = tmp_path_factory.mktemp(request.param)
    skopeo = ["skopeo", "--insecure-policy", "--override-os", "linux", "--override-arch", request.param]
    config = json.loads(harness.run([*skopeo, "inspect", "--config", archive]).stdout)
    harness.run([*skopeo, "copy", "-q", archive, f"oci:{top}/layout:one"])
    harness.run(["umoci", "raw", "unpack", "--image", f"{top}/layout:one", top / "root"])
    return request.param, config, top / "root"


def files(top):
    return {str(p.relative_to(top)) for p in top.rglob("*") if p.is_symlink() or not p.is_dir()}


def test_architectures(archive):
    index = json.loads(harness.run(["skopeo", "--insecure-policy", "inspect", "--raw", archive]).stdout)
    assert [one["platform"] for one in index["manifests"]] == [{"architecture": arch, "os": "linux"} for arch in CPUS]


def test_config(image):
    arch, config, _ = image
    assert (config["architecture"], config["os"]) == (arch, "linux")
    assert config["config"]["User"] == "65532:65532" and config["config"]["Entrypoint"] == ["/usr/bin/kxfs"]
    assert "Cmd" not in config["config"] and config["config"]["StopSignal"] == "SIGTERM"
    assert config["config"]["Labels"]["org.opencontainers.image.version"] == VERSION


def test_runs(image, tmp_path):
    """In a root that holds nothing else, as a user who may do nothing."""
    arch, _, root = image
    shutil.copytree(root, tmp_path / "root", symlinks=True)
    emulator = []
    if CPUS[arch] != os.uname().machine:
        shutil.copy(f"/usr/bin/qemu-{CPUS[arch]}-static", tmp_path / "root/emulator")
        emulator = ["/emulator"]
    enter = ["chroot", "--userspec=65532:65532", tmp_path / "root", *emulator, "/usr/bin/kxfs"]
    said = harness.run([*enter, "--version"]).stdout
    assert said.startswith(f"kxfs {VERSION}\nlibraries: libfuse 3") and "https" in said
    assert "kxfs capture [OPTIONS] [SOURCE]" in harness.run([*enter, "capture", "--help"]).stdout
    # What a probe asks.
    ask = [*enter[:-1], "/usr/bin/test", "-e"]
    assert [harness.run([*ask, name], check=False).returncode for name in ("/tmp", "/tmp/ready")] == [0, 1]


def test_holds(image):
    """Libraries, certificates, and nothing that gives rights; whose each is, and under which licence."""
    arch, config, root = image
    found = files(root)
    libraries = {name.rsplit("/", 1)[1] for name in found if ".so" in name}
    assert libraries >= {"libc.so.6", "libm.so.6", "libresolv.so.2", "libfuse3.so.3", "libcurl.so.4", "libuv.so.1", "libjson-c.so.5",
                         "libyaml-0.so.2"}
    assert {p.name for p in (root / "usr/bin").iterdir()} == {"kxfs", "test"}
    assert (root / "etc/ssl/certs/ca-certificates.crt").read_text().count("BEGIN CERTIFICATE") > 100
    for path in root.rglob("*"):
        info = path.lstat()
        wanted = (65532, 0o700) if path == root / "state" else (0, 0o1777 if path == root / "tmp" else info.st_mode & 0o755)
        if not path.is_symlink():
            assert (info.st_uid, info.st_mode & 0o7777) == wanted and info.st_gid == wanted[0], path
    bill = json.loads((root / "usr/share/doc/kxfs/kxfs.spdx.json").read_text())
    packages = {one["name"]: one for one in bill["packages"]}
    licences = {p.name for p in (root / "usr/share/licenses/kxfs").iterdir()}
    assert licences - {"LICENSE"} == set(packages) - {"kxfs"} >= {"libc6", "libfuse3-3", "libcurl4", "ca-certificates", "uthash-dev"}
    label = config["config"]["Labels"]["org.opencontainers.image.licenses"]
    for one in packages.values():
        assert one["licenseDeclared"] != "NOASSERTION" and one["licenseDeclared"] in label, one
        purl = one.get("externalRefs", [{}])[0].get("referenceLocator", f"arch={arch}")
        assert re.search(r"arch=(\w+)", purl)[1] in (arch, "all")
