"""A publisher that publishes nothing: it acknowledges every event at once. What the sweeper alone is measured with."""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler
from socketserver import UnixStreamServer

_SEQ = re.compile(rb'\{"seq":(\d+),')


class Sink(BaseHTTPRequestHandler):
    """Answers ``POST /v1/events`` with the number of the last line."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Take a batch."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        last = _SEQ.match(body[body.rstrip(b"\n").rfind(b"\n") + 1 :])
        answer = json.dumps({"ackSeq": int(last[1]) if last else 0}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    UnixStreamServer(sys.argv[1], Sink).serve_forever()
