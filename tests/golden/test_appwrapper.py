# SPDX-License-Identifier: MIT
"""AppWrappers of v1beta2: what they wrap is what those of v1beta1 wrap, which test_golden.py holds against
TorchX; what is around it is as recorded in appwrapper.yaml. `python3 test_appwrapper.py` records anew what
is different, to be read before it is committed."""

import pytest
import yaml
from golden import NAME, NAMES, Input, cases_of, difference, load, make_text, record, run

CASES = [name for name in NAMES if "mcad" in Input(name).kinds()]
GOLDEN = cases_of("appwrapper")


def options_of(source):
    """Run options of a case of MCAD's, and its namespace; v1beta2 has a queue of Kueue, but no priority."""
    options, namespace = source.options("mcad")
    options.pop("priority", None)
    if "coscheduler_name" in options:
        options["queue"] = "research"
    return {**options, "no_annotations": True}, namespace


def make(name):
    """As golden.make_text."""
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
    """As often as all roles allow; never as often as the controller likes."""
    job = yaml.safe_load(make(name)[1])
    least = min(role.get("max_retries", 0) for role in yaml.safe_load(Input(name).text)["roles"])
    assert job["metadata"]["annotations"] == {"workload.codeflare.dev.appwrapper/retryLimit": str(least)}


def test_priority():
    """What v1beta2 does not have is refused, not lost."""
    source = Input("176-mcad-priority")
    status, _, errors = run("appwrapper", source.path, "default", {"priority": 3})
    assert status != 0
    assert "-o priority: appwrapper has no such run option" in errors


def test_all_are_cases():
    assert set(GOLDEN) <= set(CASES)


if __name__ == "__main__":
    record("appwrapper", CASES, make)
