# SPDX-License-Identifier: MIT
"""Programs for Kubernetes that write manifests, into submit/ of a mount of a real cluster. Each
command line launches exactly one job with the complete manifest, or nothing, and then NAME.error
has the reason. tests/mount/test_ways.py has the other programs.

In the lines, $F is the file to write in the working directory, submit/, and $N is the name for the
job. $T is a directory on another filesystem. It contains job.yaml (the manifest of the job), k/
(from which kustomize makes it), and chart/ and two/ (helm charts with one and two objects). $OLD
and $OLDER are jobs in the cluster, and $NIGHTLY is a CronJob."""

import json
import os
import pathlib

import api
import build
import harness
import pytest
import submitting
import yaml
from mounted import IMAGE
from process import wait_for

CREATE = "kubectl create job $N --image=$IMAGE --dry-run=client -o yaml"
PATCH = '[{"op": "replace", "path": "/metadata/name", "value": "'"'$N'"'"}]'
RENAME = r"'s/\b'$OLD'\b/'$N'/'"
# A name that each of the programs accepts and no server does, and the error for it.
NO_NAME = "No_Name"
WRONG = "metadata.name: must be 1 to 63 lower-case letters"

# The line fails if nothing was launched.
REPORT = {
    "kubectl create job | cat": f"{CREATE} | cat > $F",
    "kubectl create job | tee": f"{CREATE} | tee $F > /dev/null",
    "kubectl create job | kubectl set image": f"{CREATE.replace('$IMAGE', 'other')} | kubectl set image --local -o yaml -f - $N=$IMAGE | cat > $F",
    "kubectl get | sed >": f"kubectl get job $OLD -o yaml | sed {RENAME} > $F",
    "kubectl get | jq": "kubectl get job $OLD -o json | jq '.metadata.name = $ENV.N' > $F",
    "kubectl get, sed -i, cp": f"kubectl get job $OLD -o yaml > $T/x && sed -i {RENAME} $T/x && cp $T/x $F",
    "helm template | cat": "helm template r $T/chart --set name=$N | cat > $F",
    "helm template | tee": "helm template r $T/chart --set name=$N | tee $F > /dev/null",
    "kustomize build | sed": "kustomize build $T/k | sed p -n > $F",
    "kustomize build -o FILE": "kustomize build $T/k -o $F",
    "kustomize build -o DIRECTORY": "kustomize build $T/k -o .",
    "envsubst": "sed 's/name: '$N'$/name: ${N}/' $T/job.yaml > $T/x && envsubst '$N' < $T/x > $F",
}

# These programs close the file only when they exit, and nothing checks the result of that.
SILENT = {
    "kubectl create job >": f"{CREATE} -- true > $F",
    "kubectl create job, -o json >": "kubectl create job $N --image=$IMAGE --dry-run=client -o json > $F",
    "kubectl create job in a group": f"{{ {CREATE}; }} > $F",
    "kubectl create job, two parts": f"{{ echo '# mine'; {CREATE}; }} > $F",
    "kubectl create job --from >": "kubectl create job $N --from=cronjob/$NIGHTLY --dry-run=client -o yaml > $F",
    "kubectl create -f >": "kubectl create -f $T/job.yaml --dry-run=client -o yaml > $F",
    "kubectl patch --local >": f"kubectl patch --local -f $T/job.yaml --type=json -p '{PATCH}' -o yaml > $F",
    "kubectl label --local >": "kubectl label --local -f $T/job.yaml team=a -o yaml > $F",
    "kubectl kustomize >": "kubectl kustomize $T/k > $F",
    "kustomize build >": "kustomize build $T/k > $F",
    "helm template >": "helm template r $T/chart --set name=$N > $F",
    "helm template -s >": "helm template r $T/two --set name=$N -s templates/job.yaml > $F",
}

# Nothing is launched although the name is valid, and NAME.error contains the given text.
NEVER = {
    "several jobs": ("kubectl get job $OLD $OLDER -o yaml > $F", "2 objects"),
    "two objects of a chart": ("helm template r $T/two --set name=$N > $F", "2 objects"),
    "a Pod": ("kubectl run $N --image=$IMAGE --restart=Never --dry-run=client -o yaml > $F", "Pod"),
    "a CronJob": ("kubectl create cronjob $N --image=$IMAGE --schedule='0 0 * * *' --dry-run=client -o yaml > $F", "jobTemplate"),
    "helm install --dry-run": ("helm install r $T/chart --set name=$N --dry-run=client > $F", "2 objects"),
    "an error of the program": ("kubectl create job $N --dry-run=client -o yaml > $F", None),
}

LINES = {f"LINE_{i:04}": "x" * 60 for i in range(400)}  # each program needs several writes


def manifest(name):
    """Return a job with a long manifest that does not start."""
    env = [{"name": key, "value": value} for key, value in LINES.items()]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [
                {"name": "main", "image": IMAGE, "command": ["true"], "env": env}]}}}}


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}


@pytest.fixture
def kubeconfig(cluster, namespace, tmp_path):
    """Return the administrator's kubeconfig, with the namespace NAMESPACE."""
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json").stdout)
    config["contexts"][0]["context"]["namespace"] = namespace
    path = tmp_path / "config"
    path.write_text(json.dumps(config))
    return path


def write_sources(top, name):
    """Create what the lines need in $T."""
    text = yaml.safe_dump(manifest(name))
    chart = {"apiVersion": "v2", "name": "chart", "version": "0.1.0"}
    template = yaml.safe_dump(manifest("NAME")).replace("NAME", "{{ .Values.name }}")
    files = {
        "job.yaml": text, "k/job.yaml": text, "k/kustomization.yaml": "resources: [job.yaml]\n",
        **{f"{where}/Chart.yaml": yaml.safe_dump(chart) for where in ("chart", "two")},
        **{f"{where}/templates/job.yaml": template for where in ("chart", "two")},
        "two/templates/config.yaml": yaml.safe_dump(CONFIG),
    }
    for path, content in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(content)


class Ways:
    """A mount of a namespace with some jobs."""

    def __init__(self, kx, cluster, namespace, kubeconfig, top):
        self.kx, self.cluster, self.namespace, self.top = kx, cluster, namespace, top
        nightly = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": {
            "schedule": "0 0 1 1 *", "jobTemplate": {"spec": manifest("x")["spec"]}}}
        cluster.apply(manifest("old"), manifest("older"), nightly, namespace=namespace)
        wait_for(lambda: {"old", "older"} <= set(kx.ls("jobs")), "the jobs to be shown")
        self.env = {"PATH": f"{build.parts()}:{harness.TOOL_PATH}", "KUBECONFIG": str(kubeconfig), "IMAGE": IMAGE,
                    "OLD": "old", "OLDER": "older", "NIGHTLY": "nightly", "HOME": str(top)}

    def run(self, line, number, name):
        """Run LINE. Return (status, its output, the file that it writes, the jobs that existed
        before)."""
        top = self.top / str(number)
        top.mkdir()
        write_sources(top, name)
        file = f"batch_v1_job_{name.lower()}.yaml" if line.endswith("-o .") else f"w{number}.yaml"
        before = submitting.launched(self.kx)
        p = harness.run(f"set -o pipefail; {line}", check=False, cwd=self.kx / "submit",
                        env={**self.env, "F": file, "N": name, "T": str(top)})
        return p.returncode, p.stdout + p.stderr, file, before

    def launched(self, name, line, file, before):
        submitting.launched_once(self.kx, file, before)
        assert submitting.job_of(self.kx, file) == name
        job = self.cluster.client.get(api.path_of("jobs.batch", self.namespace, name))
        [container] = job["spec"]["template"]["spec"]["containers"]
        assert container["image"] == IMAGE
        if "kubectl create job $N --image" not in line:
            assert {one["name"]: one["value"] for one in container["env"]} == LINES

    def refused(self, file, before):
        """Return the text of NAME.error."""
        wait_for(lambda: submitting.error_of(self.kx, file), f"{file}.error")
        assert submitting.launched(self.kx) == before and submitting.job_of(self.kx, file) is None
        return submitting.error_of(self.kx, file)


@pytest.fixture
def ways(make_kx, cluster, namespace, kubeconfig, limited, tmp_path):
    kx = make_kx(source=namespace, env={"KUBECONFIG": str(limited)})
    (tmp_path / "t").mkdir()
    return Ways(kx, cluster, namespace, kubeconfig, pathlib.Path(os.path.realpath(tmp_path)) / "t")


def each(rows, check):
    """Call CHECK(number, name, row) for all rows. Fail with the errors of all rows."""
    wrong = []
    for number, (name, row) in enumerate(rows.items()):
        try:
            check(number, row)
        except AssertionError as e:
            wrong.append(f"{name}: {e}")
    assert not wrong, "\n\n".join(wrong)


def test_launched(ways):
    def check(number, line):
        name = f"job-{number}"
        status, said, file, before = ways.run(line, number, name)
        assert status == 0, said
        ways.launched(name, line, file, before)

    each(REPORT | SILENT, check)


def test_refused(ways):
    def check(number, line):
        status, said, file, before = ways.run(line, number, NO_NAME)
        assert (status != 0) == (line in REPORT.values()), said
        assert WRONG in ways.refused(file, before)

    each(REPORT | SILENT, check)


def test_never(ways):
    def check(number, row):
        line, text = row
        status, said, file, before = ways.run(line, number, f"job-{number}")
        if text:
            assert status == 0, said
            assert text in ways.refused(file, before)
        else:
            assert status != 0 and ways.kx.read("submit", file) == ""
            assert submitting.launched(ways.kx) == before and not submitting.error_of(ways.kx, file)

    each(NEVER, check)


def test_directory_of_helm(ways):
    """submit/ can't contain directories."""
    status, said, _, before = ways.run("helm template r $T/chart --set name=$N --output-dir .", 0, "job-0")
    assert status != 0 and "operation not permitted" in said
    assert submitting.launched(ways.kx) == before
    assert not [name for name in ways.kx.ls("submit") if name.endswith((".job", ".error"))]


def test_dryrun(ways):
    ways.run(f"cd ../dryrun && {CREATE} > $F", 0, "job-0")
    wait_for(lambda: "kxfs/submission" in ways.kx.read("dryrun/w0.yaml"), "the manifest")
    assert set(ways.kx.ls("jobs")) == {"old", "older"}
