# SPDX-License-Identifier: MIT
"""The wheel: in pristine Debian 12 and 13, as an ordinary user who has fuse3 and Python alone."""

import json
import os
import re
import zipfile

import harness
import pytest
from test_packages import VERSION, built

pytestmark = pytest.mark.timeout(1500)  # with all that contrib/package builds before

# pip asks nobody: the wheel needs nothing but what it holds.
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
test -f env/share/man/man1/kxfs.1 -a -f env/share/doc/kxfs/rbac.yaml
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
    """As in the pod of a notebook that has /dev/fuse: the user is root of namespaces of its own."""
    in_root(root, script('test "$(id -u)" = 0', "umount kx", "unshare --user --map-root-user --mount"), wheel(packages))


def test_each_architecture_has_one(packages):
    """The program, its libraries and the bill of materials are for the machine that the name says."""
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
