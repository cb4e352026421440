# SPDX-License-Identifier: MIT
"""AppWrappers v1beta2: their wrapped objects are those of v1beta1, which test_golden.py compares
with TorchX. The rest must be as recorded in appwrapper.yaml. `python3 test_appwrapper.py` records
changes; read the diff before committing it."""

import pytest
import yaml
from golden import NAME, NAMES, Input, cases_of, difference, load, make_text, record, run

CASES = [name for name in NAMES if "mcad" in Input(name).kinds()]
GOLDEN = cases_of("appwrapper")


def options_of(source):
    """Return the run options and the namespace of a case for MCAD. v1beta2 has a Kueue queue, but
    no priority."""
    options, namespace = source.options("mcad")
    options.pop("priority", None)
    if "coscheduler_name" in options:
        options["queue"] = "research"
    return {**options, "no_annotations": True}, namespace


def make(name):
    """Like golden.make_text."""
    source = Input(name)
    options, namespace = options_of(source)
    return make_text("appwrapper", source, namespace, options)


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    status, text, errors = make(name)
    source = Input(name)
    options, namespace = options_of(source)
    options.pop("queue", None)
    before, out, before_errors = run("mcad", source.path, namespace, options)
    assert status == before
    if status:
        assert errors.replace("appwrapper", "mcad") == before_errors
        assert name not in GOLDEN
        return
    assert text == GOLDEN[name]
    items = load(out.replace(load(out)["metadata"]["name"], NAME))["spec"]["resources"]["GenericItems"]
    components = load(text)["spec"]["components"]
    assert len(items) == len(components)
    for item, component in zip(items, components):
        assert not difference(component["template"], item["generictemplate"])
        is_pod = component["template"]["kind"] == "Pod"
        assert component["podSets"] == ([{"replicas": 1, "path": "template"}] if is_pod else [])


@pytest.mark.parametrize("name", ["060-retry-application", "064-retry-one-role-zero", "001-minimal"])
def test_retries(name):
    """The retry limit is what all roles allow, not the controller's default."""
    job = yaml.safe_load(make(name)[1])
    least = min(role.get("max_retries", 0) for role in yaml.safe_load(Input(name).text)["roles"])
    assert job["metadata"]["annotations"] == {"workload.codeflare.dev.appwrapper/retryLimit": str(least)}


def test_priority():
    """An option that v1beta2 does not have is refused, not ignored."""
    source = Input("176-mcad-priority")
    status, _, errors = run("appwrapper", source.path, "default", {"priority": 3})
    assert status != 0
    assert "-o priority: appwrapper has no such run option" in errors


def test_all_are_cases():
    assert set(GOLDEN) <= set(CASES)


if __name__ == "__main__":
    record("appwrapper", CASES, make)
