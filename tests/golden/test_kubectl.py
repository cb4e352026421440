# SPDX-License-Identifier: MIT
"""What a file means that people give to kubectl: kubectl.yaml."""

import kubectl
import pytest
from golden import difference, load, run

CASES = [(case, kind) for case in kubectl.CASES for kind in kubectl.kinds(case)]
STRICT = ("tag-int", "tag-bool", "tag-binary", "tag-unknown")  # an AppDef has only tags that fit by YAML 1.2
PODS = [case for case in kubectl.CASES if "pod" in case]


@pytest.mark.parametrize("case,kind", CASES, ids=[f"{case['name']}-{kind}" for case, kind in CASES])
def test_manifest(case, kind, tmp_path):
    path = tmp_path / "job.yaml"
    path.write_bytes(kubectl.document(case, kind).encode())
    for backend in (kind, None):
        status, out, errors = run(backend, path)
        if case.get("refused"):
            assert status == 1 and kubectl.words(case, kind) in errors, errors
            continue
        assert (status, errors) == (0, "")
        made = kubectl.same_name(kubectl.without_additions(load(out)))
        assert not difference(made, kubectl.expected(case, kind))


@pytest.mark.parametrize("case", PODS, ids=[case["name"] for case in PODS])
def test_overlay(case, tmp_path):
    """Lines of an overlay mean the same, but for merge keys, which mean in an AppDef what they mean to TorchX, and
    nulls, which remove."""
    path = tmp_path / "app.yaml"
    lines = "".join(f"\n        {line}" for line in case["pod"].splitlines())
    path.write_text("name: a\nroles:\n- name: r\n  image: i\n  entrypoint: e\n"
                    f"  metadata:\n    kubernetes:\n      spec:{lines}\n")
    status, out, errors = run("job", path)
    if case.get("refused") or case["name"] in STRICT:
        assert status == 1 and (" tag " in errors if "!" in case["pod"] else case["refused"] in errors), errors
    else:
        assert (status, errors) == (0, "")
        spec = load(out)["spec"]["template"]["spec"]
        for key, value in case["value"].items():
            if value is None or case["name"] == "merge-after":
                continue
            found = spec[key][-1:] if key == "volumes" else spec[key]
            assert not difference(found, value)


def test_cases():
    """Each case has one name, and says what becomes of it."""
    assert len({case["name"] for case in kubectl.CASES}) == len(kubectl.CASES)
    for case in kubectl.CASES:
        assert len({"pod", "metadata", "file"} & set(case)) == 1, case
        assert case.get("refused") or "value" in case or "file" in case, case
