# SPDX-License-Identifier: MIT
"""Let each fuzz target search for a few seconds, starting from its corpus. The corpus must reach
most lines of the target's code.

tests/fuzz/build builds the targets; KXFS_FUZZ_TARGETS is its output directory. Add the inputs that
a search finds to the target's corpus (`corpus.py add`), so that every build replays them. By
default each search uses the same seed, so a new finding is caused by a change. Set KXFS_FUZZ_SEED=0
to search elsewhere each time."""

import json
import os
import pathlib
import resource
import subprocess
import zipfile

import corpus
import pytest

HERE = pathlib.Path(__file__).parent
SECONDS = int(os.environ.get("KXFS_FUZZ_SECONDS", "5"))
SEED = int(os.environ.get("KXFS_FUZZ_SEED", "1"))
BUILT = pathlib.Path(os.environ["KXFS_FUZZ_TARGETS"])
SLOW = 10  # seconds of CPU time that one input may take
TARGETS = sorted(path.stem.removeprefix("fuzz-") for path in HERE.glob("fuzz-*.c"))


# The code that each target tests, and the lowest coverage of its lines by the corpus, in percent.
# Only raise these numbers.
READERS = {
    "app": (85, "spec/app/app.c", "spec/app/app_value.c", "spec/app/mount.c"),
    "event": (70, "spec/api/object.c", "spec/api/refusal.c"),
    "exec": (60, "spec/api/exec_credential.c"),
    "head": (90, "spec/record/head.c"),
    "held": (80, "spec/record/held.c", "spec/app/hold.c"),
    "kindfile": (88, "spec/kindfile/file.c", "spec/kindfile/path.c", "spec/kindfile/read.c", "spec/kindfile/show.c"),
    "kubeconfig": (80, "spec/api/kubeconfig.c", "spec/api/connection.c"),
    "lines": (80, "backend/output/lines.c"),
    "logline": (70, "spec/logline/logline.c", "spec/logline/overlap.c"),
    "macro": (95, "spec/app/macro.c"),
    "manifest": (85, "spec/pods/pod.c", "spec/pods/overlay.c", "spec/pods/wrap.c"),
    "merge": (80, "backend/output/merge.c"),
    "mount": (95, "spec/app/mount.c"),
    "record": (45, "spec/record/record.c", "spec/job/snapshot.c"),
    "split": (90, "spec/api/split.c"),
    "value": (90, "spec/base/value.c"),
    "view": (90, "spec/view/job.c", "spec/view/pod.c", "spec/view/snapshot.c"),
    "world": (50, "backend/kube/world.c"),
    "yaml": (90, "spec/yaml/yaml.c", "spec/yaml/yaml_json.c", "spec/yaml/yaml_emit.c"),
}


def test_each_target_has_a_floor_and_inputs():
    assert sorted(READERS) == TARGETS
    assert sorted({target for target, _ in corpus.all_inputs()}) == TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_coverage(name, tmp_path):
    """The corpus reaches the target's code. The figure is printed, and appears in the report."""
    floor, *files = READERS[name]
    raw, profile, binary = tmp_path / "raw", tmp_path / "profile", BUILT / f"fuzz-{name}"
    corpus.unpack(name, tmp_path / "corpus")
    subprocess.run([binary, "-runs=0", tmp_path / "corpus"], env={**os.environ, "LLVM_PROFILE_FILE": str(raw)},
                   check=True, stderr=subprocess.DEVNULL, timeout=600)
    subprocess.run(["llvm-profdata", "merge", "-sparse", raw, "-o", profile], check=True, timeout=600)
    out = subprocess.run(["llvm-cov", "export", "-summary-only", binary, f"-instr-profile={profile}"], check=True,
                         stdout=subprocess.PIPE, timeout=600).stdout
    [data] = json.loads(out)["data"]
    lines = [file["summary"]["lines"] for file in data["files"] if file["filename"].endswith(tuple(f"/{file}" for file in files))]
    assert len(lines) == len(files)
    reached = 100 * sum(line["covered"] for line in lines) / sum(line["count"] for line in lines)
    print(f"{name}: {reached:.1f} % of the lines of {', '.join(files)}")
    assert reached >= floor


@pytest.mark.parametrize("name", TARGETS)
def test_for_a_service(name, tmp_path):
    """A target runs where our libraries are not installed. Its seeds are beside it."""
    needs = subprocess.run(["ldd", BUILT / f"fuzz-{name}"], check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout
    assert not [line for line in needs.splitlines() if any(name in line for name in ("json", "yaml", "curl", "uv"))]
    with zipfile.ZipFile(BUILT / f"fuzz-{name}_seed_corpus.zip") as seeds:
        assert sorted(seeds.namelist()) == sorted(corpus.inputs(name))


def is_slow(binary, path):
    """Return whether the input really takes long, rather than the machine having been slow."""
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    subprocess.run([binary, path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False, timeout=200)
    return used() - before > SLOW


@pytest.mark.parametrize("name", TARGETS)
def test_search(name, tmp_path):
    corpus.unpack(name, tmp_path / "corpus")
    p = subprocess.run(
        [BUILT / f"fuzz-{name}", f"-seed={SEED}", f"-max_total_time={SECONDS}", "-timeout=100", f"-report_slow_units={SLOW}",
         "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={tmp_path}/", tmp_path / "corpus"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        env={**os.environ, "LLVM_PROFILE_FILE": "/dev/null"}, timeout=SECONDS * 5 + 300)
    text = p.stdout.decode(errors="replace")
    found = [f"{path.name}: {path.read_bytes()!r}" for path in tmp_path.iterdir()
             if path.is_file() and (not path.name.startswith("slow-unit-") or is_slow(binary, path))]
    assert p.returncode == 0 and not found, "\n".join(found) + "\n" + text[-6000:]
    assert "stat::number_of_executed_units: 0" not in text
    print(f"{SECONDS} seconds of {name}")
