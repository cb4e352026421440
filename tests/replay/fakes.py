# SPDX-License-Identifier: MIT
"""Small controllers for the tests' API server. They do in memory what Volcano, MCAD and the controllers of batch
Jobs and JobSets do. No program runs; the test decides what happens to the pods."""

import copy
import threading
import uuid

import store as st

# --- Volcano ----------------------------------------------------------------------------------
# A small Volcano for the tests' API server. It does in memory what Volcano's controllers do to jobs.
#
# A new job gets its status, a PodGroup and its pods, as in the recordings. No program runs: the test changes the pods
# (`run`, `log`, `finish`), and the job follows them. The controller carries out Commands of `bus.volcano.sh` and the
# policies RestartJob and RestartTask. If a job is deleted, its pods are deleted too.

FINAL = ("Completed", "Failed", "Aborted", "Terminated")


class FakeVolcano:
    job_label = "volcano.sh/job-name"  # the label of a pod that names its job

    def __init__(self, server, schedule=True):
        self.server = server
        self.store = server.store
        self.schedule = schedule  # give each new pod a node immediately
        self.keep_pods = False  # pods of a deleted job continue to run until `remove_pods`
        self.commands = True  # False: the controller ignores Commands and does not delete them
        self.patient = None  # a list: the controller deletes Commands and stores them here until `obey` carries them out
        self._busy = threading.local()
        self.store.listeners.append(self._changed)

    # --- actions of tests ---

    def job(self, name, namespace="test"):
        return self.store.find(st.JOBS, namespace, name).tree()

    def pods(self, job, namespace="test"):
        """Return the names of a job's existing pods, in order of task and index."""
        found, _ = self.store.objects(st.PODS, lambda pod: pod.namespace == namespace
                                      and pod.labels.get(self.job_label) == job)
        return [pod.name for pod in found]

    def run(self, *pods, namespace="test"):
        """Let the containers of PODS run. The controller reacts when all of them run."""
        self._edit_pods(pods, namespace, lambda tree: set_containers(tree, "Running", lambda c: {
            "running": {"startedAt": st.now()}}))

    def start(self, job, namespace="test"):
        """Let all pods of JOB run. Return their names."""
        pods = self.pods(job, namespace)
        self.run(*pods, namespace=namespace)
        return pods

    def log(self, pod, container=None, namespace="test", restart=0):
        """Return the podlog.Log of a container (default: the first)."""
        obj = self.store.find(st.PODS, namespace, pod)
        return self.server.api.log(obj, container or obj.tree()["spec"]["containers"][0]["name"], restart)

    def finish(self, pod, code=0, reason=None, namespace="test", message=""):
        """End all containers of POD with exit code CODE and termination message MESSAGE."""
        self.finish_all([pod], code, reason, namespace, message)

    def finish_all(self, pods, code=0, reason=None, namespace="test", message=""):
        """Do what finish() does for several PODS. The controller reacts when all of them have ended."""
        for pod in pods:
            self._end_logs(self.store.find(st.PODS, namespace, pod))
        reason = reason or ("Completed" if code == 0 else "Error")

        def edit(tree):
            began = {c["name"]: began_at(c) for c in tree["status"].get("containerStatuses", [])}
            set_containers(tree, "Succeeded" if code == 0 else "Failed", lambda c: {"terminated": {
                "exitCode": code, "reason": reason, "startedAt": began.get(c["name"]) or st.now(),
                "finishedAt": st.now(), **({"message": message} if message else {})}})

        self._edit_pods(pods, namespace, edit)

    def wait_reason(self, pod, reason, message="", namespace="test"):
        """Let the containers of POD wait because of REASON, such as ImagePullBackOff."""
        self._edit_pods([pod], namespace, lambda tree: set_containers(tree, "Pending", lambda c: {
            "waiting": {"reason": reason, "message": message}}))

    def restart_container(self, pod, code=1, namespace="test"):
        """Let the first container of POD end with CODE and restart (restartPolicy OnFailure)."""
        obj = self.store.find(st.PODS, namespace, pod)

        def edit(tree):
            first = tree["status"]["containerStatuses"][0]
            self.log(pod, first["name"], namespace, first["restartCount"]).end()
            first["restartCount"] += 1
            first["lastState"] = {"terminated": {"exitCode": code, "reason": "Error",
                                                 "startedAt": began_at(first) or st.now(), "finishedAt": st.now()}}
            first["state"] = {"running": {"startedAt": st.now()}}

        self.store.change(st.PODS, namespace, obj.name, edit)

    def set_phase(self, job, phase, namespace="test", **status):
        """Set the phase in the job's own status, independent of its pods."""
        def edit(tree):
            tree.setdefault("status", {}).update(status)
            tree["status"]["state"] = {"phase": phase, "lastTransitionTime": st.now()}
        self.store.change(st.JOBS, namespace, job, edit)

    def obey(self):
        """Carry out the Commands that the controller has stored in `patient`."""
        with self.store.lock:
            self._busy.now = True
            try:
                while self.patient:
                    self._obey(self.patient.pop(0))
            finally:
                self._busy.now = False

    def remove_pods(self, job, namespace="test", which=lambda pod: True):
        """End and delete the pods of JOB that match WHICH."""
        for name in self.pods(job, namespace):
            if not which(self.store.find(st.PODS, namespace, name)):
                continue
            pod = self.store.find(st.PODS, namespace, name)
            self.store.change(st.PODS, namespace, name,
                              lambda tree: tree["metadata"].update(deletionTimestamp=st.now()))
            self._end_logs(pod)
            self.store.remove(st.PODS, namespace, name)

    # --- the controllers ---

    def _changed(self, change):
        if getattr(self._busy, "now", False):
            return
        self._busy.now = True
        try:
            obj = change.after or change.before
            if obj.resource is st.JOBS and change.before is None:
                self._begin(obj)
            elif obj.resource is st.JOBS and change.after is None:
                if not self.keep_pods:
                    self.remove_pods(obj.name, obj.namespace)
                self._remove_group(obj)
            elif obj.resource is st.PODS and change.after is not None:
                self._follow_pods(obj)
            elif obj.resource is st.COMMANDS and change.before is None:
                self._command(obj)
        finally:
            self._busy.now = False

    def _begin(self, job):
        tree = job.tree()
        if "status" in tree:
            return
        state = {"phase": "Pending", "lastTransitionTime": st.now()}
        self.store.change(st.JOBS, job.namespace, job.name, lambda tree: tree.update(status={
            "conditions": [{"status": "Pending", "lastTransitionTime": st.now()}],
            "minAvailable": tree["spec"]["minAvailable"], "state": state}))
        self.store.put(st.PODGROUPS, {
            "apiVersion": st.PODGROUPS.api_version, "kind": "PodGroup",
            "metadata": {"name": f"{job.name}-{job.uid}", "namespace": job.namespace, "labels": job.labels,
                         "uid": str(uuid.uuid4()), "creationTimestamp": st.now(),
                         "ownerReferences": owner(job)},
            "spec": {"minMember": tree["spec"]["minAvailable"], "queue": tree["spec"].get("queue")},
            "status": {"phase": "Inqueue"}})
        self._make_pods(job, tree)
        self._count(job)

    def _make_pods(self, job, tree):
        for task in tree["spec"]["tasks"]:
            for index in range(task.get("replicas", 1)):
                if self.store.find(st.PODS, job.namespace, f"{job.name}-{task['name']}-{index}"):
                    continue
                self.store.put(st.PODS, make_pod(job, tree, task, index, self.schedule))

    def _count(self, job, **more):
        """Write the number of pods in each phase into the job's status."""
        phases = [self.store.find(st.PODS, job.namespace, name).phase.lower()
                  for name in self.pods(job.name, job.namespace)]
        counts = {key: phases.count(key) for key in ("pending", "running", "succeeded", "failed")}

        def edit(tree):
            status = tree["status"]
            for key, count in counts.items():
                status.pop(key, None)
                if count:
                    status[key] = count
            status.update(more)

        self.store.change(st.JOBS, job.namespace, job.name, edit)
        return counts, len(phases)

    def _phase(self, job, phase, drop=False, **more):
        def edit(tree):
            status = tree["status"]
            if drop:  # Volcano drops these numbers when a job has ended
                for key in ("pending", "running", "succeeded", "failed", "taskStatusCount"):
                    status.pop(key, None)
            status.update(more)
            status["state"] = {"phase": phase, "lastTransitionTime": st.now()}
        self.store.change(st.JOBS, job.namespace, job.name, edit)

    def _follow_pods(self, pod):
        name = pod.labels.get("volcano.sh/job-name")
        job = self.store.find(st.JOBS, pod.namespace, name) if name else None
        if job is None or "status" not in job.tree():
            return
        tree = job.tree()
        if tree["status"]["state"]["phase"] in (*FINAL, "Aborting", "Terminating"):
            return
        counts, total = self._count(job)
        if counts["failed"] and self._obey_policies(job, tree):
            return
        if counts["failed"] and counts["failed"] + counts["succeeded"] == total:
            self._end(job, "Failed")
        elif counts["succeeded"] == total:
            self._end(job, "Completed")
        elif counts["running"] + counts["succeeded"] >= tree["spec"]["minAvailable"]:
            self._phase(job, "Running")

    def _end(self, job, phase):
        self._phase(job, phase)
        version = self.job(job.name, job.namespace)["status"].get("version", 0)
        self._phase(job, phase, drop=True, version=version + 1)
        self._remove_group(job)

    def _obey_policies(self, job, tree):
        """Apply the job's policies to its failed pods. Return false if no policy applies."""
        done = False
        for name in self.pods(job.name, job.namespace):
            pod = self.store.find(st.PODS, job.namespace, name)
            action = action_of(tree, pod) if pod.phase == "Failed" else None
            if action in ("RestartJob", "RestartTask"):
                self._restart(job, action == "RestartTask" and pod.labels["volcano.sh/task-spec"])
                done = True
            if action == "RestartJob":
                break
        return done

    def _restart(self, job, task=None):
        """Restart JOB, or only its task TASK. If no attempt is left, the job fails instead, and
        pods that have ended remain."""
        status, spec = self.job(job.name, job.namespace)["status"], self.job(job.name, job.namespace)["spec"]
        retries, limit = status.get("retryCount", 0) + 1, spec.get("maxRetry", 3)
        self._phase(job, "Restarting", drop=True, retryCount=retries)
        if task:
            self.remove_pods(job.name, job.namespace, lambda pod: pod.labels["volcano.sh/task-spec"] == task)
        else:
            self.remove_pods(job.name, job.namespace, lambda pod: retries < limit or not has_ended(pod))
        if retries >= limit:
            self._end(job, "Failed")
            self.remove_pods(job.name, job.namespace, lambda pod: not has_ended(pod))
            return
        self._phase(job, "Pending", version=status.get("version", 0) + (not task))
        self._make_pods(job, self.job(job.name, job.namespace))
        counts, _ = self._count(job)
        if counts["running"] + counts["succeeded"] >= spec["minAvailable"]:
            self._phase(job, "Running")

    def _command(self, command):
        if not self.commands:
            return
        self.store.remove(st.COMMANDS, command.namespace, command.name)
        if self.patient is None:
            self._obey(command)
        else:
            self.patient.append(command)

    def _obey(self, command):
        tree = command.tree()
        job = self.store.find(st.JOBS, command.namespace, tree["target"]["name"])
        if job is None:
            return
        phase = job.tree()["status"]["state"]["phase"]
        action = tree["action"]
        if action in ("AbortJob", "TerminateJob") and phase not in FINAL:
            ends = {"AbortJob": ("Aborting", "Aborted"), "TerminateJob": ("Terminating", "Terminated")}[action]
            self._phase(job, ends[0], drop=True)
            self.remove_pods(job.name, job.namespace)
            self._phase(job, ends[1])
            self._remove_group(job)
        elif (action, phase) == ("ResumeJob", "Aborted") or (action == "RestartJob" and phase not in FINAL):
            self._restart(job)

    def _remove_group(self, job):
        self.store.remove(st.PODGROUPS, job.namespace, f"{job.name}-{job.uid}")

    def _end_logs(self, pod):
        for key, log in list(self.server.api.logs.items()):
            if key[0] == pod.uid and not log.ended:
                log.end()

    def _edit_pods(self, pods, namespace, edit):
        with self.store.lock:
            self._busy.now = True
            try:
                for pod in pods:
                    changed = self.store.change(st.PODS, namespace, pod, edit)
                    assert changed is not None, f"there is no pod {pod}"
                if pods:
                    self._follow_pods(changed)
            finally:
                self._busy.now = False


def owner(job):
    return [{"apiVersion": job.resource.api_version, "kind": job.resource.kind, "name": job.name,
             "uid": job.uid, "controller": True, "blockOwnerDeletion": True}]


def action_of(tree, pod):
    """Return the action that the policies of a job define for the failure of POD, or None. Policies of the task come
    before those of the job."""
    tasks = [task for task in tree["spec"]["tasks"] if task["name"] == pod.labels["volcano.sh/task-spec"]]
    for policies in (tasks[0].get("policies") or [], tree["spec"].get("policies") or []):
        for policy in policies:
            if "PodFailed" in [policy.get("event"), *(policy.get("events") or [])]:
                return policy["action"]
    return None


def has_ended(pod):
    return pod.phase in ("Succeeded", "Failed")


def new_pod(template, name, namespace, owners, labels, annotations, scheduled=True):
    """Return a pod from TEMPLATE that also has these labels and annotations. If SCHEDULED, it has a
    node, and its containers are being created."""
    pod = copy.deepcopy(template)
    meta = pod.get("metadata") or {}
    pod.update(kind="Pod", apiVersion="v1", status={"phase": "Pending"}, metadata={
        **meta, "name": name, "namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": st.now(),
        "ownerReferences": owners, "labels": {**(meta.get("labels") or {}), **labels},
        "annotations": {**(meta.get("annotations") or {}), **annotations}})
    if scheduled:
        pod["spec"]["nodeName"] = "node-1"
        set_containers(pod, "Pending", lambda c: {"waiting": {"reason": "ContainerCreating"}})
    return pod


def make_pod(job, tree, task, index, scheduled):
    own = {"volcano.sh/job-name": job.name, "volcano.sh/task-spec": task["name"],
           "volcano.sh/task-index": str(index), "volcano.sh/queue-name": tree["spec"].get("queue", "default")}
    status = tree.get("status", {})
    return new_pod(task["template"], f"{job.name}-{task['name']}-{index}", job.namespace, owner(job),
                   {**own, "volcano.sh/job-namespace": job.namespace},
                   {**own, "scheduling.k8s.io/group-name": f"{job.name}-{job.uid}",
                    "volcano.sh/job-version": str(status.get("version", 0)),
                    "volcano.sh/job-retry-count": str(status.get("retryCount", 0))}, scheduled)


def began_at(container):
    """Return the time at which CONTAINER, a container's status, began to run, or None if it does not run."""
    return container["state"].get("running", {}).get("startedAt")


def set_containers(tree, phase, state):
    status = tree["status"]
    status["phase"] = phase
    before = {c["name"]: c for c in status.get("containerStatuses", [])}
    status["containerStatuses"] = [
        {"name": c["name"], "image": c.get("image", ""), "imageID": "", "ready": phase == "Running",
         "restartCount": before.get(c["name"], {}).get("restartCount", 0),
         "lastState": before.get(c["name"], {}).get("lastState", {}), "state": state(c)}
        for c in tree["spec"]["containers"]]


# --- Batch Jobs -------------------------------------------------------------------------------
# A small controller of batch Jobs for the tests' API server. Indexed Jobs get their status and pods as in the
# recordings. No program runs; the test decides what happens to the pods.

BATCH_LABEL = "batch.kubernetes.io/"


class FakeJob(FakeVolcano):
    """Has the methods of FakeVolcano (start, run, log, finish ...), for batch Jobs."""

    job_label = BATCH_LABEL + "job-name"

    def say(self, job, *conditions, namespace="test", reason="", message="", **status):
        """Set JOB's status as the controller would. CONDITIONS are the types of conditions that are true."""
        def edit(tree):
            tree.setdefault("status", {}).update(status, conditions=[{
                "type": kind, "status": "True", "reason": reason or kind, "message": message,
                "lastTransitionTime": st.now()} for kind in conditions])
        self.store.change(st.BATCH_JOBS, namespace, job, edit)

    def retry(self, job, index, namespace="test"):
        """Create another pod for INDEX, whose last pod has failed. Return its name."""
        obj = self.store.find(st.BATCH_JOBS, namespace, job)
        pod = make_job_pod(obj, index, 1)
        self.store.put(st.PODS, pod)
        return pod["metadata"]["name"]

    def _changed(self, change):
        obj = change.after or change.before
        if obj.resource is not st.BATCH_JOBS or getattr(self._busy, "now", False):
            return
        self._busy.now = True
        if change.before is None and not obj.tree().get("status"):
            spec = obj.tree()["spec"]
            self.say(obj.name, *(["Suspended"] if spec.get("suspend") else []), namespace=obj.namespace, active=1)
            for index in range(0 if spec.get("suspend") else min(spec["completions"], spec["parallelism"])):
                self.store.put(st.PODS, make_job_pod(obj, index, 0))
        elif change.after and change.before:
            self._obey(obj, change.before.tree()["spec"], obj.tree()["spec"])
        elif change.after is None and not self.keep_pods:
            self.remove_pods(obj.name, obj.namespace)
        self._busy.now = False

    def _obey(self, obj, old, new):
        if new.get("suspend", False) != old.get("suspend", False):
            self.say(obj.name, *(["Suspended"] if new["suspend"] else []), namespace=obj.namespace)
        if new.get("activeDeadlineSeconds") == 0 != old.get("activeDeadlineSeconds"):
            self.say(obj.name, "Failed", reason="DeadlineExceeded", message="m", namespace=obj.namespace)


def make_job_pod(job, index, failures):
    return make_indexed(job.tree()["spec"]["template"], job.name, job.uid, job.namespace, index,
                        {BATCH_LABEL + "job-name": job.name}, {BATCH_LABEL + "job-index-failure-count": str(failures)})


def make_indexed(template, job, uid, namespace, index, labels, annotations):
    """Return a pod of the Indexed Job JOB that also has these labels and annotations."""
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid, "controller": True}]
    return new_pod(template, f"{job}-{index}-{uuid.uuid4().hex[:5]}", namespace, owners, labels,
                   {BATCH_LABEL + "job-completion-index": str(index), **annotations})


# --- JobSets ----------------------------------------------------------------------------------
# A small JobSet controller for the tests' API server. JobSets get their status and the pods of their Jobs as in the
# recordings. No program runs; the test decides what happens to the pods.

JOBSET_LABEL = "jobset.sigs.k8s.io/"


class FakeJobSet(FakeVolcano):
    """Has the methods of FakeVolcano (start, run, log, finish ...), for JobSets."""

    job_label = JOBSET_LABEL + "jobset-name"

    def say(self, job, *conditions, namespace="test", **status):
        """Set JOB's status as the controller would. CONDITIONS are the types of conditions that are true."""
        def edit(tree):
            old = tree.setdefault("status", {"restarts": 0})
            old.update(status, conditions=[{
                "type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": st.now()}
                for kind in conditions])
        self.store.change(st.JOBSETS, namespace, job, edit)

    def restart(self, job, namespace="test"):
        """Recreate all pods of JOB. Return their names."""
        restarts = self.store.find(st.JOBSETS, namespace, job).tree()["status"]["restarts"] + 1
        self.say(job, namespace=namespace, restarts=restarts)
        self.remove_pods(job, namespace)
        return self._make_pods(self.store.find(st.JOBSETS, namespace, job), restarts)

    def _make_pods(self, jobset, restarts):
        for job in jobset.tree()["spec"]["replicatedJobs"]:
            spec = job["template"]["spec"]
            for index in range(spec["completions"]):
                self.store.put(st.PODS, make_jobset_pod(jobset, job["name"], spec["template"], index, restarts))
        return self.pods(jobset.name, jobset.namespace)

    def _changed(self, change):
        obj = change.after or change.before
        if obj.resource is not st.JOBSETS or getattr(self._busy, "now", False):
            return
        self._busy.now = True
        if change.before is None and "status" not in obj.tree():
            self.say(obj.name, namespace=obj.namespace)
            if not obj.tree()["spec"].get("suspend"):
                self._make_pods(obj, 0)
        elif change.after is None and not self.keep_pods:
            self.remove_pods(obj.name, obj.namespace)
        self._busy.now = False


def make_jobset_pod(jobset, name, template, index, restarts):
    labels = {JOBSET_LABEL + "jobset-name": jobset.name, JOBSET_LABEL + "jobset-uid": jobset.uid, JOBSET_LABEL + "replicatedjob-name": name,
              JOBSET_LABEL + "replicatedjob-replicas": "1", JOBSET_LABEL + "job-index": "0", JOBSET_LABEL + "restart-attempt": str(restarts),
              "batch.kubernetes.io/job-name": f"{jobset.name}-{name}-0"}
    return make_indexed(template, f"{jobset.name}-{name}-0", str(uuid.uuid4()), jobset.namespace, index, labels, {})


# --- MCAD -------------------------------------------------------------------------------------
# A small MCAD for the tests' API server. AppWrappers of v1beta1 get MCAD's status, and are dispatched when a test calls
# `dispatch`. No program runs; the test decides what happens to the pods.


class FakeMcad(FakeVolcano):
    """Has the methods of FakeVolcano (start, run, log, finish ...), for AppWrappers."""

    job_label = "appwrapper.mcad.ibm.com"

    def say(self, job, state, condition=None, reason="", message="", namespace="test", **status):
        """Set JOB's status as MCAD would. MCAD adds a condition only once, and gives some conditions a new time."""
        def edit(tree):
            old = tree.setdefault("status", {})
            old.update(state=state, **status)
            conditions = old.setdefault("conditions", [])
            for c in conditions:
                if c["type"] == condition and condition in ("Dispatched", "PreemptCandidate"):
                    c["lastTransitionMicroTime"] = st.now()[:-1] + ".000000Z"
            if condition and condition not in [c["type"] for c in conditions]:
                conditions.append({"type": condition, "status": "True", "reason": reason, "message": message,
                                   "lastTransitionMicroTime": st.now()[:-1] + ".000000Z"})
        self.store.change(st.APPWRAPPERS, namespace, job, edit)

    def dispatch(self, job, namespace="test"):
        """Create the generic items of JOB. Return the names of its pods."""
        wrapper = self.store.find(st.APPWRAPPERS, namespace, job)
        for item in wrapper.tree()["spec"]["resources"]["GenericItems"]:
            if item["generictemplate"].get("kind") == "Pod":
                self.store.put(st.PODS, make_appwrapper_pod(wrapper, item["generictemplate"]))
        self.say(job, "Running", "Dispatched", "AppWrapperRunnable", namespace=namespace)
        return self.pods(job, namespace)

    def requeue(self, job, namespace="test"):
        """Delete the pods of JOB, and put JOB back into the queue."""
        count = self.store.find(st.APPWRAPPERS, namespace, job).tree()["status"].get("numberOfRequeueings", 0)
        self.say(job, "Pending", "PreemptCandidate", "MinPodsNotRunning", "Insufficient number of pods.",
                 namespace, numberOfRequeueings=count + 1)
        self.remove_pods(job, namespace)

    def _changed(self, change):
        obj = change.after or change.before
        if obj.resource is not st.APPWRAPPERS or getattr(self._busy, "now", False):
            return
        self._busy.now = True
        if change.before is None and "status" not in obj.tree():
            self.say(obj.name, "Pending", "Queueing", "AwaitingHeadOfLine", namespace=obj.namespace)
        elif change.after is None and not self.keep_pods:
            self.remove_pods(obj.name, obj.namespace)
        self._busy.now = False


def make_appwrapper_pod(wrapper, template):
    name = template["metadata"]["name"]
    return new_pod(template, name, wrapper.namespace, owner(wrapper),
                   {"appwrapper.mcad.ibm.com": wrapper.name, "resourceName": name}, {})
