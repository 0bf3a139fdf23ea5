"""Every command before a server that is not there, or is none, or knows nobody."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from dgdr_cli.cluster.commands import COMMANDS

from tests.cli.cluster.conftest import Ask

WORDS = {
    "create": ("-f", "examples/qwen3-32b.yaml"),
    "watch": ("x",),
    "runs": ("x",),
    "candidates": ("x",),
    "show": ("x",),
    "diff": ("x", "y"),
    "promote": ("x", "--name", "y"),
    "rerun": ("x", "--reason", "r"),
    "cancel": ("x", "--reason", "r"),
    "report": ("x",),
}

Answering = Callable[[int, bytes], Path]


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch, examples: Path) -> None:
    monkeypatch.chdir(examples.parent)


def kubeconfig_of(server: str, folder: Path) -> Path:
    file = folder / "config"
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    cluster = {"name": "a", "cluster": {"server": server}}
    config = {
        "contexts": [context],
        "current-context": "a",
        "clusters": [cluster],
        "users": [{"name": "a", "user": {}}],
    }
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **config}))
    return file


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[Answering]:
    """Kubeconfig of a server that gives one answer to everything."""
    servers: list[HTTPServer] = []

    def begin(status: int, content: bytes) -> Path:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(content)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
                pass

        servers.append(HTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return kubeconfig_of(f"http://127.0.0.1:{servers[-1].server_port}", tmp_path)

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


def test_every_command_is_tried() -> None:
    assert WORDS.keys() == COMMANDS.keys()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_server_that_is_not_there(ask: Ask, tmp_path: Path, command: str) -> None:
    ended = ask(command, *WORDS[command], kubeconfig=kubeconfig_of("https://127.0.0.1:1", tmp_path))
    assert (ended.exit_code, ended.stdout) == (4, "")
    assert ended.stderr.startswith("dgdr: the API server 127.0.0.1:1 does not answer: ")
    assert "Connection refused" in ended.stderr
    assert "check --context and --kubeconfig" in ended.stderr
    assert "HTTPS" not in ended.stderr


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("status", "content", "words"),
    [
        (200, b"<html>\x1b[2J", "what answers is no API server: the answer is no JSON: <html>\\u001b[2J"),
        (200, b"\xff\xfe", "what answers is no API server: the answer is no JSON: "),
        (200, b"{}", "the API server failed: the answer is no object: {}"),
        (200, b"[]", "the API server failed: the answer is no object: []"),
        (404, b"page not found", "CustomResourceDefinitions"),
        (502, b"<html>\x1b[2J\xff", "the API server failed: <html>\\u001b[2J"),
        (401, b"", "the API server does not accept the credentials: Unauthorized; log in again"),
        (403, b"", "Forbidden; a rule of the cluster refuses it"),
    ],
)
def test_what_answers_is_no_api_server(
    ask: Ask, answering: Answering, command: str, status: int, content: bytes, words: str
) -> None:
    ended = ask(command, *WORDS[command], kubeconfig=answering(status, content))
    assert (ended.exit_code, ended.stdout) == (4, "")
    assert words in ended.stderr
    assert "internal error" not in ended.stderr
    assert "\x1b" not in ended.stderr
