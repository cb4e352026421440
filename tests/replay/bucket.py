# SPDX-License-Identifier: MIT
"""A server of the part of S3 that `rclone copy` uses. The buckets are directories, the objects files.

It checks the key's name, the MD5 sum of an upload and the paths, but no signature."""

import base64
import email.utils
import hashlib
import http.server
import pathlib
import threading
import urllib.parse
from xml.sax.saxutils import escape

KEY, SECRET, REGION = "kxfs-test", "a+secret/that=nobody:may.see", "us-east-1"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, code, body=b"", **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code):
        self.reply(status, f"<Error><Code>{code}</Code></Error>".encode(), Content_Type="application/xml")

    def wanted(self):
        """Return the path of the bucket or object, and the parameters, or None if the request was refused."""
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        key = query.get("X-Amz-Credential") or self.headers.get("Authorization", "").partition("Credential=")[2]
        names = urllib.parse.unquote(url.path).strip("/").split("/")
        if key.split("/")[0] != KEY:
            return self.refuse(403, "InvalidAccessKeyId")
        if {"", ".", ".."} & set(names):
            return self.refuse(400, "InvalidURI")
        return self.server.data.joinpath(*names), query

    def do_GET(self):
        if not (wanted := self.wanted()):
            return
        path, query = wanted
        if path.parent == self.server.data:
            if path.is_dir():
                return self.reply(200, self.listed(path, query), Content_Type="application/xml")
            return self.refuse(404, "NoSuchBucket")
        if not path.is_file():
            return self.refuse(404, "NoSuchKey")
        body = path.read_bytes()
        self.reply(200, body, ETag=f'"{hashlib.md5(body).hexdigest()}"', Last_Modified=email.utils.formatdate(path.stat().st_mtime, usegmt=True),
                   **self.server.metadata.get(path, {}))

    do_HEAD = do_GET

    def listed(self, bucket, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        contents, folders = [], set()
        for path in sorted(path for path in bucket.rglob("*") if path.is_file()):
            key = str(path.relative_to(bucket))
            first, found, _ = key[len(prefix):].partition(delimiter) if delimiter else ("", "", "")
            if key.startswith(prefix) and found:
                folders.add(prefix + first + delimiter)
            elif key.startswith(prefix):
                contents.append(f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                                f"<ETag>&quot;{hashlib.md5(path.read_bytes()).hexdigest()}&quot;</ETag>"
                                f"<Size>{path.stat().st_size}</Size></Contents>")
        folders = [f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in sorted(folders)]
        return ('<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false</IsTruncated>'
                f"{''.join(contents + folders)}</ListBucketResult>").encode()

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if not (wanted := self.wanted()):
            return
        path = wanted[0]
        if path.parent == self.server.data:
            path.mkdir(exist_ok=True)
            return self.reply(200)
        md5 = hashlib.md5(body)
        if base64.b64encode(md5.digest()).decode() != self.headers.get("Content-MD5"):
            return self.refuse(400, "BadDigest")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.server.metadata[path] = {name: value for name, value in self.headers.items() if name.lower().startswith("x-amz-meta-")}
        path.write_bytes(body)
        self.reply(200, ETag=f'"{md5.hexdigest()}"')

    def log_message(self, *args):
        pass


class Bucket:
    """Bucket(directory) is a context manager. The buckets are the directories in DIRECTORY/data."""

    def __init__(self, directory):
        self.data = pathlib.Path(directory, "data")
        self.data.mkdir(parents=True)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.data, self.server.metadata = self.data, {}
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()
