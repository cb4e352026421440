# SPDX-License-Identifier: MIT
"""kxfs without a package: a wheel, and a container image."""

import json
import os
import re
import shutil
import zipfile

import harness
import pytest
from test_packages import VERSION, built

# --- Wheels -----------------------------------------------------------------------------------
# The wheel, in new Debian 12 and 13 systems, for an ordinary user who has only fuse3 and Python.

# pip needs no network: the wheel has no dependencies.
INSTALL = """
ln -sf ../proc/self/mounts /etc/mtab # as an installed Debian has it; fusermount3 reads it
useradd --create-home me
chmod 755 /kx /kx/*.whl
cat >/kx/as-me <<'END'
set -eux
cd
python3 -m venv env
env/bin/pip install --no-index /kx/*.whl
PATH=$HOME/env/bin:$PATH
kxfs --version | grep -x "kxfs {version}"
! ldd env/bin/kxfs | grep -v 'linux-vdso\\|/ld-linux\\|/lib\\(c\\|m\\|dl\\|pthread\\|resolv\\)[.]so\\|=> '$HOME/env/ || exit 1
test -f env/share/man/man1/kxfs.1 -a -f env/share/doc/kxfs/contrib/rbac.yaml
python3 - <<'PYTHON'
from importlib.metadata import distribution
kxfs = distribution("kxfs")
assert kxfs.version == "{version}", kxfs.version
assert {e.name: e.value for e in kxfs.entry_points}["kxfs"] == "torchx_kxfs.scheduler:create_scheduler"
PYTHON
mkdir kx
{before}
kxfs local: kx
cp env/share/doc/kxfs/examples/hello.yaml kx/submit/
test "$(cat kx/submit/hello.yaml.job/wait)" = SUCCEEDED
grep . kx/submit/hello.yaml.job/log
env/bin/pip install --no-index --force-reinstall /kx/*.whl # over the running mount
cp env/share/doc/kxfs/examples/hello.yaml kx/submit/again.yaml
test "$(cat kx/submit/again.yaml.job/wait)" = SUCCEEDED
{after}
while grep -qsx kxfs /proc/[0-9]*/comm; do sleep 0.1; done
env/bin/pip uninstall --yes kxfs
test -z "$(find env -path '*kxfs*' ! -type d)" # pip leaves empty directories
END
chmod 644 /kx/as-me
su me -c 'exec {as} bash /kx/as-me'
"""


def script(before="", after="fusermount3 -u kx", namespaces=""):
    return (INSTALL.replace("{version}", VERSION).replace("{before}", before).replace("{after}", after)
            .replace("{as}", namespaces))


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def root(request):
    return request.getfixturevalue(request.param)


def wheel(packages):
    return built(packages, f"kxfs-{VERSION}-*_{os.uname().machine}.whl")


def test_in_a_virtual_environment(packages, root, in_root):
    in_root(root, script(), wheel(packages))


def test_in_a_user_namespace(packages, root, in_root):
    """As in a notebook's pod with /dev/fuse: the user is root in its own namespaces."""
    in_root(root, script('test "$(id -u)" = 0', "umount kx", "unshare --user --map-root-user --mount"), wheel(packages))


def test_each_architecture_has_one(packages):
    """The program, its libraries and the bill of materials are for the architecture in the wheel's
    name."""
    found = {}
    for path in packages.glob("*.whl"):
        with zipfile.ZipFile(path) as z:
            names = z.namelist()
            program = z.read(f"kxfs-{VERSION}.data/scripts/kxfs")
            [bill] = [n for n in names if n.endswith(".spdx.json")]
            [kxfs] = [p for p in json.loads(z.read(bill))["packages"] if p["name"] == "kxfs"]
            found[re.search(r"manylinux_2_34_(\w+)\.whl$", path.name)[1]] = (
                int.from_bytes(program[18:20], "little"), sorted(n.rsplit("/", 1)[1] for n in names if "/lib/kxfs/" in n),
                kxfs["versionInfo"])
    assert set(found) == {"x86_64", "aarch64"}
    assert (found["x86_64"][0], found["aarch64"][0]) == (62, 183)  # e_machine
    assert found["x86_64"][1:] == found["aarch64"][1:] and "libfuse3.so.3" in found["x86_64"][1]


def test_program_for_arm64_finds_its_libraries(packages, arm64, tmp_path):
    with zipfile.ZipFile(built(packages, "kxfs-*_aarch64.whl")) as z:
        z.extractall(tmp_path)
    (tmp_path / "lib").symlink_to(tmp_path / f"kxfs-{VERSION}.data/data/lib")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/kxfs"
    (tmp_path / f"kxfs-{VERSION}.data/scripts/kxfs").rename(program)
    program.chmod(0o755)
    out = harness.run(["qemu-aarch64-static", "-L", arm64, "-E", "LD_TRACE_LOADED_OBJECTS=1", program]).stdout
    assert re.search(rf"libfuse3\.so\.3 => {re.escape(str(tmp_path))}\S*/lib/kxfs/", out), out
    assert harness.run(["qemu-aarch64-static", "-L", arm64, program, "--version"]).stdout.startswith(f"kxfs {VERSION}\n")


# --- Images -----------------------------------------------------------------------------------
# The image: its metadata, and that its program runs with only what the image contains, as a user
# without privileges.
#
# test_they_are_reproducible in test_packages.py tests that the same tree produces the same bytes.

CPUS = {"amd64": "x86_64", "arm64": "aarch64"}


@pytest.fixture(scope="module")
def archive(packages):
    return f"oci-archive:{built(packages, f'kxfs-{VERSION}-image.tar')}:{VERSION}"


@pytest.fixture(scope="module", params=CPUS)
def image(request, archive, tmp_path_factory):
    """Return (architecture, its configuration, its root), read by programs that are independent of
    how the image was built."""
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
    """The program runs in a root that contains nothing else, as an unprivileged user."""
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
    # The check that a probe makes.
    ask = [*enter[:-1], "/usr/bin/test", "-e"]
    assert [harness.run([*ask, name], check=False).returncode for name in ("/tmp", "/tmp/ready")] == [0, 1]


def test_holds(image):
    """The image contains libraries, certificates, and nothing that grants privileges. Each file has
    its package and licence."""
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
