# SPDX-License-Identifier: MIT
"""A document that is written into dryrun/ becomes its manifest, by the rules of submit/, and nothing is launched.
test_submit_slow.py tests slow answers."""

import json
import os
import re

import harness
import pytest
import yaml

LIMIT = 1400 * 1024  # the largest size of an object, in bytes
GOOD = harness.app("touch started", num_replicas=2) + "\n"
BAD = '{"name": "app", "nonsense": 1}\n'


def for_kind(kind, args=None, text=GOOD, **fields):
    """Return the document TEXT for the scheduler KIND."""
    app = {**json.loads(text), "scheduler": kind, "scheduler_args": args or {}, **fields}
    return json.dumps(app, indent=1) + "\n"


VOLCANO = for_kind("volcano", {"queue": "research"})


def put(kx, name, text):
    return harness.err_of(kx.write, f"dryrun/{name}", text)


def made(kx, name="x.yaml"):
    """Wait until NAME has a manifest, and return the manifest."""
    def ready():
        try:
            value = yaml.safe_load(kx.read("dryrun", name))
        except yaml.YAMLError:
            return None
        return value if isinstance(value, dict) and {"kind", "work_dir"} & set(value) else None
    manifest = harness.wait_for(ready, what=f"the manifest of {name}")
    assert nothing_runs(kx)
    return manifest


def nothing_runs(kx):
    """True if there is no job and GOOD's program was not started. That program would create a file."""
    return kx.ls("jobs") == kx.history() == [] and not (kx.work / "started").exists()


def on_command_line(kx, text, *words):
    path = kx.work / "doc"
    path.write_text(text)
    p = harness.run([kx.binary, f"--dry-run={path}", *words], check=False)
    path.unlink()
    return p


def without_chance(manifest):
    """Return the parts of MANIFEST that are equal in each run."""
    text = json.dumps(manifest).replace(manifest["metadata"]["name"], "ID")
    manifest = json.loads(text)
    del manifest["metadata"]["annotations"]["kxfs/submission"]
    return manifest


# --- the result ---


@pytest.mark.parametrize("kind, args", [("volcano", {"queue": "research"}), ("mcad", {"priority": 3, "network": "n"})])
def test_it_is_what_the_command_prints(kx, kind, args):
    text = for_kind(kind, args)
    assert put(kx, "x.yaml", text) == ""
    printed = on_command_line(kx, text)
    assert printed.returncode == 0, printed.stderr
    ours, theirs = made(kx), yaml.safe_load(printed.stdout)
    assert without_chance(ours) == without_chance(theirs)
    assert ours["metadata"]["annotations"]["kxfs/appdef"] == text


def test_the_command_reads_standard_input(kx):
    for path in ("-", "/dev/stdin"):
        p = harness.run([kx.binary, f"--dry-run={path}"], input=VOLCANO, check=False)
        assert p.returncode == 0, p.stderr
        assert yaml.safe_load(p.stdout)["spec"]["queue"] == "research"
    p = harness.run([kx.binary, "--dry-run=-"], input=BAD, check=False)
    assert p.returncode == 1 and "-:1:" in p.stderr and "nonsense" in p.stderr


def test_true_size_at_once(kx):
    """The size of the manifest is visible immediately, although the kernel still caches the attributes of the
    document."""
    for _ in range(5):
        assert put(kx, "x.yaml", VOLCANO) == ""
        size = (kx / "dryrun/x.yaml").stat().st_size
        assert size == len(kx.read("dryrun/x.yaml")) != len(VOLCANO)


def test_local_job(kx):
    assert put(kx, "x.yaml", GOOD) == ""
    record = made(kx)
    job = kx.submit(GOOD, "x.yaml")
    job.finish()
    real = yaml.safe_load(job.read("manifest.yaml"))
    assert set(record) == set(real)
    for key in ("file", "work_dir", "app"):
        assert record[key] == real[key]


def test_texts_of_a_local_job(kx):
    """manifest.yaml of a local job, and the result of its dry run, quote each text that YAML might
    read as a number. Both also have the scheduler and its options. So a copy of either runs the
    same job."""
    texts = ["3.10", "True", "1e-4", "0644", "83492e7"]
    script = 'printf "%s\\n" "$@" $A $B $C $D $E > $KXFS_JOB'.replace("$", "$$")
    env = ", ".join(f"{name}: {text}" for name, text in zip("ABCDE", texts, strict=True))
    text = f"""\
name: app
roles:
- name: main
  image: none
  entrypoint: /bin/sh
  args: [-c, '{script}', sh, {", ".join(texts)}]
  env: {{{env}}}
scheduler: local
scheduler_args: {{time_limit: 10m}}
"""

    def ran(text):
        job = kx.submit(text)
        job.finish()
        assert (kx.work / job.id).read_text().split() == texts * 2
        return job.read("manifest.yaml")

    assert put(kx, "x.yaml", text) == ""
    for copy in (kx.read("dryrun/x.yaml"), ran(text)):
        role = yaml.safe_load(copy)["app"]["roles"][0]
        assert role["args"][3:] == [*role["env"].values()] == texts
        assert put(kx, "y.yaml", copy) == ""
        assert yaml.safe_load(kx.read("dryrun/y.yaml"))["app"]["roles"] == [role]
        ran(copy)


def test_written_again(kx):
    assert put(kx, "x.yaml", VOLCANO) == ""
    first = made(kx)["metadata"]["name"]
    assert put(kx, "x.yaml", BAD) == "EINVAL"
    assert kx.ls("dryrun") == ["x.yaml", "x.yaml.error"]
    assert kx.read("dryrun/x.yaml") == BAD
    assert put(kx, "x.yaml", VOLCANO) == ""
    assert made(kx)["metadata"]["name"] != first
    assert kx.ls("dryrun") == ["x.yaml"]


def test_a_manifest_is_not_made_again(kx):
    """A manifest for a cluster does not change when it is renamed, touched or copied."""
    put(kx, "x.yaml", VOLCANO)
    text = kx.read("dryrun/x.yaml")
    kx.call("touch dryrun/x.yaml && chmod 600 dryrun/x.yaml && mv dryrun/x.yaml dryrun/y.yaml")
    assert kx.read("dryrun/y.yaml") == text
    kx.call("mv dryrun/y.yaml dryrun/scratch && mv dryrun/scratch dryrun/x.yaml")
    assert kx.read("dryrun/x.yaml") == text
    kx.call("cp dryrun/x.yaml dryrun/z.yaml")
    ours, theirs = made(kx, "z.yaml"), yaml.safe_load(text)
    assert ours["metadata"].pop("annotations") and theirs["metadata"].pop("annotations")
    assert ours == theirs


@pytest.mark.parametrize("name", ["x.tmp", ".x.yaml", "x.yaml~"])
def test_scratch(kx, name):
    assert put(kx, name, GOOD) == ""
    assert kx.read("dryrun", name) == GOOD
    assert kx.ls("dryrun") == [name]
    assert harness.err_of(os.rename, kx / "dryrun" / name, kx / "submit/x.yaml") == "EXDEV"


def test_move_to_submit(kx):
    """mv copies the file to the other directory, which submits the copy, and removes the source only if that
    succeeds."""
    kx.write("dryrun/tmp", GOOD)
    kx.call("mv dryrun/tmp submit/x.yaml")
    assert kx.ls("dryrun") == [] and kx.read("submit/x.yaml") == GOOD
    assert kx.ls("jobs") == [os.path.basename(os.readlink(kx / "submit/x.yaml.job"))]
    kx.call("mv submit/x.yaml dryrun/")
    assert kx.ls("dryrun") == ["x.yaml"] and kx.read("dryrun/x.yaml") != GOOD
    assert "x.yaml" not in kx.ls("submit") and len(kx.ls("jobs")) == 1
    kx.write("dryrun/bad", BAD)
    p = harness.run(["mv", str(kx / "dryrun/bad"), str(kx / "submit/bad.yaml")], check=False)
    assert p.returncode == 1 and "Invalid argument" in p.stderr
    assert kx.read("dryrun/bad") == BAD and kx.read("submit/bad.yaml.error")


def test_nothing_of_an_empty_file(kx):
    kx.call(": > dryrun/x.yaml; touch dryrun/y.yaml")
    assert kx.ls("dryrun") == ["x.yaml", "y.yaml"]
    assert kx.read("dryrun/x.yaml") == ""


def test_remount(kx):
    put(kx, "x.yaml", VOLCANO)
    put(kx, "bad.yaml", BAD)
    put(kx, "tmp.x", "text")
    before = {name: kx.read("dryrun", name) for name in ("x.yaml", "bad.yaml", "tmp.x")}
    kx.restart()
    assert {name: kx.read("dryrun", name) for name in kx.ls("dryrun")} == before
    assert kx.call("mv dryrun/x.yaml dryrun/y.yaml").stderr == ""
    assert kx.read("dryrun/y.yaml") == before["x.yaml"]


def test_read_only(make_kx):
    kx = make_kx()
    put(kx, "x.yaml", VOLCANO)
    text = kx.read("dryrun/x.yaml")
    kx.restart(options="ro")
    assert kx.read("dryrun/x.yaml") == text
    assert put(kx, "x.yaml", VOLCANO) == put(kx, "y.yaml", VOLCANO) == "EROFS"
    assert harness.err_of(os.remove, kx / "dryrun/x.yaml") == "EROFS"


def test_a_full_disk_keeps_the_document(make_kx):
    kx = make_kx(start=False)
    with harness.tmpfs(kx.state, "256k"):
        kx.start()
        text = for_kind("volcano", {"queue": "q"}, harness.app("true", num_replicas=300))
        assert put(kx, "x.yaml", text) == "ENOSPC"
        assert kx.read("dryrun/x.yaml") == text
        assert "No space left" in kx.read("dryrun/x.yaml.error")
        assert kx.end() == 0


# --- run options ---


def test_options_of_the_mount(make_kx):
    """A mount may have run options for several kinds. Each document gets only those of its kind."""
    kx = make_kx("queue=research,network=net,service_account=robot,reserved_memmb=5,no_annotations")
    assert put(kx, "v.yaml", for_kind("volcano", {"reserved_memmb": 7})) == ""
    assert put(kx, "m.yaml", for_kind("mcad", {"network": None})) == ""
    assert put(kx, "w.yaml", for_kind("volcano", {"queue": "other", "no_annotations": False})) == ""
    assert put(kx, "l.yaml", GOOD) == ""
    volcano, mcad, other = (yaml.safe_load(kx.read("dryrun", name)) for name in ("v.yaml", "m.yaml", "w.yaml"))
    assert volcano["spec"]["queue"] == "research" and "annotations" not in volcano["metadata"]
    assert volcano["spec"]["tasks"][0]["template"]["spec"]["serviceAccountName"] == "robot"
    pod = mcad["spec"]["resources"]["GenericItems"][0]["generictemplate"]
    assert pod["spec"]["serviceAccountName"] == "robot"
    assert "k8s.v1.cni.cncf.io/networks" not in pod["metadata"]["annotations"]
    assert other["spec"]["queue"] == "other" and "annotations" in other["metadata"]


@pytest.mark.parametrize("kind, args, text", [
    ("volcano", {}, "scheduler_args.queue: volcano needs this run option"),
    ("volcano", {"queue": 5.5}, "scheduler_args.queue: must be text, but is 5.5; put it into quotes"),
    ("volcano", {"queue": "q", "reserved_memmb": "5"}, "scheduler_args.reserved_memmb: must be a whole number"),
    ("volcano", {"queue": "q", "no_annotations": 1}, "scheduler_args.no_annotations: must be true or false"),
    ("volcano", {"queue": "q", "queu": "q"}, "volcano has no such run option; did you mean queue?"),
    ("volcano", {"queue": "q", "network": "q"}, "scheduler_args.network: volcano has no such run option"),
    ("mcad", {"priority": 1.5}, "scheduler_args.priority: must be a whole number, but is 1.5"),
    ("mcad", {"queue": "q"}, "scheduler_args.queue: mcad has no such run option"),
    ("volcano", {"queue": "q", "namespace": "other"}, "scheduler_args.namespace: is \"other\""),
])
def test_options_that_are_refused(kx, kind, args, text):
    assert put(kx, "x.yaml", for_kind(kind, args)) == "EINVAL"
    assert text in kx.read("dryrun/x.yaml.error")
    printed = on_command_line(kx, for_kind(kind, args))
    assert printed.returncode == 1 and text in printed.stderr


# --- size ---


@pytest.mark.parametrize("kind, args", [("volcano", {"queue": "q"}), ("mcad", {})])
def test_too_large(kx, kind, args):
    """A document that is too large is refused in submit/ and in dryrun/. The message has the size
    of the object, the limit, and the bytes per replica."""
    text = for_kind(kind, args, harness.app("true", num_replicas=3000))
    assert put(kx, "x.yaml", text) == "EFBIG"
    assert kx.read("dryrun/x.yaml") == text
    assert harness.err_of(kx.write, "submit/x.yaml", text) == "EFBIG"
    printed = on_command_line(kx, text)
    assert printed.returncode == 1 and printed.stdout == ""
    told = [kx.read("dryrun/x.yaml.error"), kx.read("submit/x.yaml.error"), printed.stderr]
    for words in told:
        size, limit, each = numbers(words)
        assert limit == LIMIT < size and size // 3000 == each
    assert kx.ls("jobs") == []


def numbers(words):
    """Return the bytes, the limit and the bytes per replica that the message WORDS names."""
    found = re.search(r"would have (\d+) bytes, but the cluster stores at most (\d+); with (\d+) bytes per replica",
                              words)
    assert found, words
    return [int(word) for word in found.groups()]


def test_too_large_manifest(kx):
    """The message for a manifest that is too large has no bytes per replica."""
    head = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\n"
    assert put(kx, "x.yaml", head + "spec: {}\n") == ""
    # A control character is longer in JSON.
    assert put(kx, "x.yaml", head + 'spec: "' + "\\a" * 400000 + '"\n') == "EFBIG"
    assert f"the cluster stores at most {LIMIT}" in kx.read("dryrun/x.yaml.error")
