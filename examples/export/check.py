"""Runs the example with a collector, and checks what it exports.

    python3 examples/export/check.py [trace.svg]

The picture in docs/observability.md comes from such a run.
"""

import os
import subprocess
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

HERE = Path(__file__).resolve().parent
METRICS = ["db_client_operation_duration_bucket", 'couchbase_client_retries{', 'reason="KV_TEMPORARY_FAILURE"']
SPANS = [b"dispatch_to_server", b"couchbase.retries", b"KV_TEMPORARY_FAILURE", b"export-example"]
PICTURE = ["attempt 1", "attempt 2", "attempt 3", "KV_TEMPORARY_FAILURE"]


class Collector(BaseHTTPRequestHandler):
    received = b""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/traces":
            Collector.received += body
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def main() -> int:
    collector = HTTPServer(("127.0.0.1", 0), Collector)
    Thread(target=collector.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as scratch:
        picture = Path(sys.argv[1] if len(sys.argv) > 1 else f"{scratch}/trace.svg").resolve()
        environment = {
            **os.environ,
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        }
        command = ["cargo", "run", "--quiet", "--locked", "--", "picture", str(picture)]
        done = subprocess.run(command, cwd=HERE, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        missing = [f"metric: {text}" for text in METRICS if text not in done.stdout]
        missing += [f"span: {text}" for text in SPANS if text not in Collector.received]
        missing += [f"picture: {text}" for text in PICTURE if text not in picture.read_text()]
    print(f"{len(Collector.received)} bytes of spans, {len(done.stdout.splitlines())} lines of metrics")
    print(*[f"missing {text}" for text in missing], sep="\n", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
