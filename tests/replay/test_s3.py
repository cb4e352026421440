# SPDX-License-Identifier: MIT
"""The sidecar of contrib/kubernetes/s3: its command copies an archive to a bucket of S3."""

import gateway
import harness
import pytest
import store as st
import yaml
from archiving import Archive, Capture, print_and_end
from harness import ROOT, run, wait_for

pytestmark = pytest.mark.s3

CONFIG = """[bucket]
type = alias
remote = store:jobs/cluster-1

[store]
type = s3
provider = Other
endpoint = {url}
region = {region}
access_key_id = {key}
secret_access_key = {secret}
"""


def sidecar():
    [patch] = yaml.safe_load_all((ROOT / "contrib/kubernetes/s3/sidecar.yaml").read_text())
    [container] = patch["spec"]["template"]["spec"]["containers"]
    return container["command"][-1]


def test_byte_for_byte(make_mount, server, volcano, tmp_path):
    """Jobs run and are deleted, and their files are in the bucket."""
    archive = Archive(tmp_path / "archive")
    archive.dir.mkdir()
    capture = Capture(make_mount(server, start=False), archive.dir)
    with gateway.Gateway(tmp_path / "gateway") as bucket:
        (bucket.data / "jobs").mkdir()
        wait_for(bucket.is_up)
        (tmp_path / "rclone.conf").write_text(CONFIG.format(url=bucket.url, region=gateway.REGION, key=gateway.KEY,
                                                            secret=gateway.SECRET))
        script = sidecar().replace("/etc/rclone/rclone.conf", str(tmp_path / "rclone.conf"))
        script = script.replace("/state/archive", str(archive.dir)).replace("sleep 60", "sleep 1")
        proc = harness.popen(["sh", "-c", script], env={"HOME": str(tmp_path)})
        capture.up()
        try:
            for name in ("fine", "fails"):
                print_and_end(server, volcano, name, f"{name} {'x' * 1000}\n" * 3000, code=int(name == "fails"))
                archive.has(name, capture.kx.said)
                server.store.remove(st.JOBS, "test", name)
            half = archive.top / ".half.tmp"
            half.mkdir()
            (half / "log").write_text("not whole\n")
            files = {path.relative_to(archive.dir): path.read_bytes() for path in archive.top.glob("2*/**/*") if path.is_file()}
            assert len(files) > 16
            top = bucket.data / "jobs/cluster-1"
            wait_for(lambda: all((top / path).exists() and (top / path).read_bytes() == text for path, text in files.items()),
                     what=lambda: run(["find", str(bucket.data)]).stdout)
            assert not list(top.rglob(".half.tmp")) and not (top / ".kxfs-archive").exists()
        finally:
            proc.kill()
            proc.wait(60)
            capture.end()
