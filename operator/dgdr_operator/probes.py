"""Liveness, readiness and metrics over HTTP."""

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Check = Callable[[], str | None]
"""Returns None when all is well, else what is wrong."""


class Probes:
    """The server, in a thread of its own.

    Args:
        port: where it listens; 0: any free port, see ``port``.
        alive: whether the process should go on.
        ready: whether it does its work, or stands by to do it.
        metrics: the text that Prometheus reads.
    """

    def __init__(self, port: int, *, alive: Check, ready: Check, metrics: Callable[[], bytes]) -> None:
        pages: dict[str, Callable[[], tuple[HTTPStatus, bytes]]] = {
            "/healthz": lambda: _checked(alive),
            "/readyz": lambda: _checked(ready),
            "/metrics": lambda: (HTTPStatus.OK, metrics()),
        }

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = pages.get(self.path.partition("?")[0])
                status, body = (HTTPStatus.NOT_FOUND, b"not found\n") if page is None else page()
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - a probe a second is no news
                pass

        self._server = ThreadingHTTPServer(("", port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="probes", daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


def _checked(check: Check) -> tuple[HTTPStatus, bytes]:
    problem = check()
    if problem is None:
        return HTTPStatus.OK, b"ok\n"
    return HTTPStatus.SERVICE_UNAVAILABLE, f"{problem}\n".encode()
