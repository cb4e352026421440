# SPDX-License-Identifier: MIT
"""The intended differences between kxfs and TorchX 0.7.0, as functions. Each takes a manifest of
TorchX, in which the job's name is @ID@, and changes it to that of kxfs. The names are those of
docs/deviations.md."""

import copy
import os
import pwd
import re
import string

ID = "@ID@"
LABELS = ("app.kubernetes.io/name", "torchx.pytorch.org/app-name", "torchx.pytorch.org/role-name")
EFA = "vpc.amazonaws.com/efa"


class Case:
    """What a deviation may need: the kind, the AppDef and the run options."""

    def __init__(self, kind, app, options, namespace="default", torchx_id=None):
        self.kind, self.app, self.options, self.namespace = kind, app, options, namespace
        self.torchx_id = torchx_id

    @property
    def roles(self):
        return self.app["roles"]

    def rank0_env(self, index, k):
        """Return the name of the variable with the host of rank 0, for replica K of role INDEX."""
        if index == k == 0:
            return "TORCHX_RANK0_HOST"
        if self.kind == "mcad":
            return hosts_env(self.roles[0])
        return f"VC_{norm(self.roles[0]['name'])}_0_HOSTS".upper().replace("-", "_")

    def pods(self, job):
        """Yield (index of the role, replica, template with metadata and spec, task or item)."""
        holders = (job["spec"]["tasks"] if self.kind == "volcano" else
                   [item for item in job["spec"]["resources"]["GenericItems"]
                    if item["generictemplate"]["kind"] == "Pod"])
        position = 0
        for index, role in enumerate(self.roles):
            for k in range(role.get("num_replicas", 1)):
                holder = holders[position]
                yield index, k, holder["template" if self.kind == "volcano" else "generictemplate"], holder
                position += 1
        assert position == len(holders)


def container(pod):
    return pod["spec"]["containers"][0]


def walk(value, change):
    """Return VALUE with every string replaced by change(string)."""
    if isinstance(value, dict):
        return {key: walk(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [walk(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def torchx_norm(name):
    name = name[1:] if name.startswith("-") else name
    return "".join(re.findall(r"[a-z0-9\-]", name.lower()))


def norm(name):
    return "".join(re.findall(r"[a-z0-9\-]", name.lower())).strip("-")


def clean(name):
    return norm(name).lstrip("0123456789-")


def torchx_clean(name):
    return torchx_norm(name).lstrip("0123456789")


def torchx_hosts_env(role):
    return f"TORCHX_MCAD_{torchx_clean(role['name'])}_0_HOSTS".upper().replace("-", "")


def hosts_env(role):
    return f"TORCHX_MCAD_{clean(role['name'])}_0_HOSTS".upper().replace("-", "")


# --- TorchX's bugs -----------------------------------------------------------------------------

def bug_1(job, case):
    """If the name of role 0 contains a dash, Volcano's variable has an underscore."""
    if case.kind != "volcano":
        return job
    wrong = f"VC_{torchx_norm(case.roles[0]['name'])}_0_HOSTS".upper()
    return walk(job, lambda text: text.replace(wrong, wrong.replace("-", "_")))


def clean_label(value):
    value = re.sub(r"[^A-Za-z0-9._-]", ".", value)
    value = re.sub(r"^[._-]+", "", value)[:63]
    return re.sub(r"[._-]+$", "", value)


def bug_4(job, _case):
    """Names in labels are normalized."""
    def change(value):
        if isinstance(value, list):
            return [change(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {key: clean_label(item) if key in LABELS and isinstance(item, str) else change(item)
                for key, item in value.items()}
    return change(job)


def bug_6(job, case):
    """The pods of all roles except the first one have the role's index in their names."""
    if case.kind != "mcad":
        return job
    for index, k, pod, _ in case.pods(job):
        if index == 0:
            continue
        name = f"{ID}-{index}-{k}"
        pod["metadata"]["name"] = pod["spec"]["hostname"] = container(pod)["name"] = name
        for variable in container(pod)["env"]:
            if variable["name"].startswith("TORCHX_MCAD_") and variable["value"] == f"{ID}-0.{ID}":
                variable["value"] = f"{ID}-{index}-0.{ID}"
    return job


def bug_7(job, case):
    """All pods get the variable that rank0_env names."""
    if case.kind != "mcad":
        return job
    name = hosts_env(case.roles[0])
    first = {"name": name, "value": f"{ID}-0.{ID}"}
    for index, _, pod, _ in case.pods(job):
        env = container(pod)["env"]
        if index > 0 and hosts_env(case.roles[index]) == name:
            env[-1] = first
        elif index > 0:
            env.insert(len(env) - 1, first)
    return job


def bug_9(job, case):
    """Names do not start or end with dashes. In MCAD, they do not start with digits either."""
    if case.kind == "volcano":
        wrong = f"VC_{torchx_norm(case.roles[0]['name'])}_0_HOSTS".upper()
        right = f"VC_{norm(case.roles[0]['name'])}_0_HOSTS".upper()
        job = walk(job, lambda text: text.replace(wrong, right))
        for index, k, pod, task in case.pods(job):
            task["name"] = container(pod)["name"] = f"{norm(case.roles[index]['name'])}-{k}"
        return job
    inner = torchx_clean(case.torchx_id)  # pods are named after this
    for index, _, pod, _ in case.pods(job):
        for variable in container(pod)["env"]:
            if variable["name"] == torchx_hosts_env(case.roles[index]):
                variable["name"] = hosts_env(case.roles[index])
    job = walk(job, lambda text: text.replace(torchx_hosts_env(case.roles[0]), hosts_env(case.roles[0])))
    return walk(job, lambda text: text.replace(inner, ID))


def bug_10(job, case):
    """There is no pull secret without a name."""
    if case.kind == "mcad":
        for _, _, pod, _ in case.pods(job):
            if pod["spec"].get("imagePullSecrets") == [{}]:
                del pod["spec"]["imagePullSecrets"]
    return job


def bug_13(job, case):
    """The suffix has at least 8 characters, so the app's name is truncated earlier."""
    if case.kind != "mcad":
        return job
    name = clean_label(case.app["name"])[:max(63 - 7 - len(case.roles), 24) - 8]

    def change(value):
        if isinstance(value, list):
            return [change(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {key: name if key in LABELS[:2] and isinstance(item, str) else change(item)
                for key, item in value.items()}
    return change(job)


def bug_23(job, case):
    """maxRetry counts attempts."""
    if case.kind == "volcano":
        for holder in (job["spec"], *job["spec"]["tasks"]):
            if holder.get("maxRetry"):
                holder["maxRetry"] += 1
    return job


def bug_24(job, case):
    """REPLICA has a policy: the task, which is one replica, is restarted."""
    if case.kind == "volcano":
        for index, _, _, task in case.pods(job):
            if "policies" in task and case.roles[index].get("retry_policy") == "REPLICA":
                assert task["policies"] == []
                task["policies"] = [{"event": event, "action": "RestartTask"} for event in ("PodEvicted", "PodFailed")]
    return job


# --- newer TorchX ------------------------------------------------------------------------------

def new_field_path(job, case):
    """[FIELD_PATH] at the start of a variable's value"""
    for _, _, pod, _ in case.pods(job):
        for variable in container(pod)["env"]:
            if variable.get("value", "").startswith("[FIELD_PATH]"):
                path = variable.pop("value")[len("[FIELD_PATH]"):]
                variable["valueFrom"] = {"fieldRef": {"fieldPath": path}}
    return job


def new_reserved(job, case):
    """The options reserved_millicpu and reserved_memmb"""
    for index, _, pod, _ in case.pods(job):
        resources = container(pod)["resources"]
        for key, unit, option in (("cpu", "m", "reserved_millicpu"), ("memory", "M", "reserved_memmb")):
            if key not in resources["requests"] or option not in case.options:
                continue
            whole = resources["limits"][key]
            if not whole.endswith(unit):  # it is a device with that name
                whole = f"{int(case.roles[index]['resource']['cpu'] * 1000)}m"
            resources["requests"][key] = f"{max(int(whole[:-1]) - case.options[option], 0)}{unit}"
    return job


def new_efa(job, case):
    """The option efa_device_count"""
    count = case.options["efa_device_count"]
    for _, _, pod, _ in case.pods(job):
        limits = container(pod)["resources"]["limits"]
        limits.pop(EFA, None)
        if count:
            limits[EFA] = str(count)
    return job


def new_image(job, case):
    """TORCHX_IMAGE follows the user's variables and that of rank 0. If the user sets it, it stays
    there."""
    for index, _, pod, _ in case.pods(job):
        env, first = container(pod)["env"], container(pod)
        own = {"name": "TORCHX_IMAGE", "value": first["image"]}
        names = [str(variable["name"]) for variable in env]
        if own["name"] in names:
            env[names.index(own["name"])] = own
            continue
        wrapped = [name for name in names if name.startswith("TORCHX_MCAD_") and
                   name not in case.roles[index].get("env", {})]
        env.insert(len(env) - len(wrapped), own)
    return job


def overlay_of(role):
    found = role.get("metadata", {}).get("kubernetes", {})
    return found.get("V1Pod", found)


def merge(base, overlay):
    for key, value in overlay.items():
        operator, _, field = key.partition(":") if key.startswith("__") else ("", "", key)
        if operator == "__del__":
            base.pop(field, None)
        elif operator == "__put__":
            base[field] = copy.deepcopy(value)
        elif operator == "__join__":
            field, _, on = field.partition(":")
            items = base.setdefault(field, [])
            for item in value:
                same = [old for old in items if on in item and old.get(on) == item[on]]
                if same:
                    same[-1].update(copy.deepcopy(item))
                else:
                    items.append(copy.deepcopy(item))
        elif isinstance(value, dict):
            merge(base.setdefault(field, {}), value)
        elif isinstance(value, list) and field in base:
            base[field] = base[field] + copy.deepcopy(value)
        else:
            base[field] = copy.deepcopy(value)


def new_overlay(job, case):
    """The pod overlay in a role's metadata. TorchX's labels win."""
    for index, k, pod, _ in case.pods(job):
        labels = dict(pod["metadata"]["labels"])
        macros = {"app_id": ID, "replica_id": str(k), "img_root": "", "base_img_root": "DEPRECATED",
                  "rank0_env": case.rank0_env(index, k)}
        overlay = walk(overlay_of(case.roles[index]), lambda text: string.Template(text).safe_substitute(macros))
        merge(pod, overlay)
        pod["metadata"].setdefault("labels", {}).update(labels)
    return job


# --- minor differences -------------------------------------------------------------------------

def text_values(job, case):
    """A plain scalar in place of a text becomes that text."""
    for index, _, pod, _ in case.pods(job):
        pod["spec"]["nodeSelector"] = {key: str(value) for key, value in pod["spec"]["nodeSelector"].items()}
        names = [str(name) for name in case.roles[index].get("env", {})]
        for variable in container(pod)["env"]:
            variable["name"] = str(variable["name"])
        container(pod)["command"] = [str(word) for word in container(pod)["command"]]
        container(pod)["image"] = str(container(pod)["image"])
        assert all(name in [v["name"] for v in container(pod)["env"]] for name in names)
    return job


def namespace_of_mount(job, case):
    """An empty namespace means the mount's."""
    def change(value):
        if isinstance(value, list):
            return [change(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {key: case.namespace if key == "namespace" else change(item) for key, item in value.items()}
    return change(job)


DEVIATIONS = {
    "BUG-1": bug_1, "BUG-4": bug_4, "BUG-6": bug_6, "BUG-7": bug_7, "BUG-9": bug_9, "BUG-10": bug_10,
    "BUG-13": bug_13, "BUG-23": bug_23, "BUG-24": bug_24, "NEW-field-path": new_field_path,
    "NEW-reserved": new_reserved, "NEW-efa": new_efa, "NEW-image": new_image, "NEW-overlay": new_overlay,
    "TEXT-scalars": text_values, "OPTION-namespace": namespace_of_mount,
}


# --- additions of kxfs -------------------------------------------------------------------------

def templates(job):
    """Return the pods, or pod templates, in the object of a job of any kind."""
    spec = job["spec"]
    found = ([task["template"] for task in spec.get("tasks", ())]
             + [item["generictemplate"] for item in spec.get("resources", {}).get("GenericItems", ())]
             + [component["template"] for component in spec.get("components", ())]
             + [one["template"]["spec"]["template"] for one in spec.get("replicatedJobs", ())])
    return [template for template in found if template.get("kind", "Pod") == "Pod"]


def take_user(job):
    """Remove the label of the submitting user from the object and its pods. Assert that all have
    it."""
    name = pwd.getpwuid(os.getuid()).pw_name
    for place in job, *templates(job):
        labels = place["metadata"]["labels"]
        assert labels.pop("kxfs/user").startswith(name[:46] if re.fullmatch(r"[A-Za-z0-9]+", name) else "")
        if not labels:
            del place["metadata"]["labels"]


def take_additions(job, text):
    """Check and remove the annotations that kxfs adds to the object, and the label of the
    submitting user."""
    take_user(job)
    notes = job["metadata"].pop("annotations")
    assert re.fullmatch(r"[^@\s]+@[^@\s]+", notes.pop("kxfs/submitter"))
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", notes.pop("kxfs/submission"))
    assert notes.pop("kxfs/appdef") == text
    assert not notes


def take_job_id(job, case, users=()):
    """BUG-5: the variable TORCHX_JOB_ID is the handle, including the namespace. Remove it, because
    the recorded manifests were made without TorchX's Runner and don't have it."""
    scheduler = {"volcano": "kubernetes", "mcad": "kubernetes_mcad"}[case.kind]
    for index, _, pod, _ in case.pods(job):
        env = container(pod)["env"]
        found = [v for v in env if v["name"] == "TORCHX_JOB_ID"]
        assert found == [{"name": "TORCHX_JOB_ID", "value": f"{scheduler}://torchx/{case.namespace}:{ID}"}]
        behind = len({v for v in case.roles[index].get("env", {})} - {"TORCHX_JOB_ID"})
        if "TORCHX_JOB_ID" not in case.roles[index].get("env", {}):
            assert env.index(found[0]) == behind, "not right behind the user's variables"
        env.remove(found[0])
