# SPDX-License-Identifier: MIT
"""The objects that a real Volcano creates for a job: pods, PodGroup, and the ConfigMap and Service
of its plugins. Pure functions of the job."""

import copy

KINDS = ("env", "svc")  # simulated plugins


def owner(job):
    return [{"apiVersion": job["apiVersion"], "kind": "Job", "name": job["metadata"]["name"],
             "uid": job["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}]


def owner_uid(item):
    """Return the uid of the job that controls an object, or None."""
    for ref in item["metadata"].get("ownerReferences", ()):
        if ref.get("controller") and ref["kind"] == "Job" and ref["apiVersion"].startswith("batch.volcano.sh"):
            return ref["uid"]
    return None


def group_name(job):
    return f"{job['metadata']['name']}-{job['metadata']['uid']}"


def pod_name(job, task, index):
    return f"{job['metadata']['name']}-{task['name']}-{index}"


def controlled(job):
    """Return status.controlledResources: which plugins have created their objects."""
    return {f"plugin-{name}": name for name in KINDS if name in (job["spec"].get("plugins") or {})}


def make_group(job):
    spec = job["spec"]
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": group_name(job), "namespace": job["metadata"]["namespace"],
                     "ownerReferences": owner(job),
                     "labels": job["metadata"].get("labels") or {},
                     "annotations": job["metadata"].get("annotations") or {}},
        "spec": {"minMember": spec["minAvailable"], "queue": spec["queue"],
                 "minTaskMember": {task["name"]: task["minAvailable"] for task in spec["tasks"]}},
        "status": {},
    }


# --- plugins ---------------------------------------------------------------------------------


def variable(task):
    return f"VC_{task['name'].upper().replace('-', '_')}"


def hosts(job, task):
    name = job["metadata"]["name"]
    return ",".join(f"{pod_name(job, task, i)}.{name}" for i in range(task["replicas"]))


def make_resources(job):
    """Return (resource, object) of the plugin svc: the names of all pods, and a Service that
    resolves them."""
    if "svc" not in (job["spec"].get("plugins") or {}):
        return []
    name = job["metadata"]["name"]
    data = {}
    for task in job["spec"]["tasks"]:
        data[f"{task['name']}.host"] = hosts(job, task).replace(",", "\n")
        data[f"{variable(task)}_HOSTS"] = hosts(job, task)
        data[f"{variable(task)}_NUM"] = str(task["replicas"])
    place = {"namespace": job["metadata"]["namespace"], "ownerReferences": owner(job)}
    return [
        ("configmaps", {"apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"name": f"{name}-svc", **place}, "data": data}),
        ("services", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, **place},
                      "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {
                          "volcano.sh/job-name": name,
                          "volcano.sh/job-namespace": job["metadata"]["namespace"]}}}),
    ]


def add_plugins(job, index, spec):
    plugins = job["spec"].get("plugins") or {}
    name = job["metadata"]["name"]
    env = []
    if "svc" in plugins:
        for task in job["spec"]["tasks"]:
            for suffix in ("HOSTS", "NUM"):
                key = f"{variable(task)}_{suffix}"
                env.append({"name": key, "valueFrom": {"configMapKeyRef": {"name": f"{name}-svc", "key": key}}})
        spec["subdomain"] = name
        spec.setdefault("volumes", []).append(
            {"name": f"{name}-svc", "configMap": {"name": f"{name}-svc"}})
        for container in spec["containers"]:
            container.setdefault("volumeMounts", []).append(
                {"name": f"{name}-svc", "mountPath": "/etc/volcano"})
    if "env" in plugins:
        env += [{"name": key, "value": str(index)} for key in ("VK_TASK_INDEX", "VC_TASK_INDEX")]
    for container in spec["containers"] + spec.get("initContainers", []):
        container["env"] = container.get("env", []) + env


# --- pods ------------------------------------------------------------------------------------


def make_pod(job, task, index):
    template = copy.deepcopy(task["template"])
    meta, spec = template.get("metadata") or {}, template["spec"]
    name, status = job["metadata"]["name"], job.get("status", {})
    own = {
        "volcano.sh/job-name": name, "volcano.sh/queue-name": job["spec"]["queue"],
        "volcano.sh/task-index": str(index), "volcano.sh/task-spec": task["name"],
    }
    labels = {**(meta.get("labels") or {}), **own,
              "volcano.sh/job-namespace": job["metadata"]["namespace"]}
    annotations = {
        **(meta.get("annotations") or {}), **own,
        "scheduling.k8s.io/group-name": group_name(job),
        "volcano.sh/job-retry-count": str(status.get("retryCount", 0)),
        "volcano.sh/job-version": str(status.get("version", 0)),
        "volcano.sh/template-uid": f"{name}-{task['name']}",
    }
    spec.setdefault("hostname", pod_name(job, task, index))
    spec.setdefault("schedulerName", job["spec"]["schedulerName"])
    if "priorityClassName" in job["spec"]:
        spec.setdefault("priorityClassName", job["spec"]["priorityClassName"])
    add_plugins(job, index, spec)
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": {
        "name": pod_name(job, task, index), "namespace": job["metadata"]["namespace"],
        "labels": labels, "annotations": annotations, "ownerReferences": owner(job)}}
