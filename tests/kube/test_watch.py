"""Lines of a watch, whole and broken."""

import json

import pytest
from dgdr_kube.errors import KubeError, NotFound, Retryable
from dgdr_kube.watch import change_of, lines_of


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b'{"a":1}\n{"b', b'":2}\n'], ['{"a":1}', '{"b":2}']),
        (["\u00e9\n".encode()[:1], "\u00e9\n".encode()[1:]], ["\u00e9"]),
        ([b"\n\n", b"a\n", b"cut"], ["a"]),
        ([], []),
    ],
)
def test_lines_of_a_stream(chunks: list[bytes], lines: list[str]) -> None:
    assert list(lines_of(chunks)) == lines


def test_a_change() -> None:
    change = change_of("GET", json.dumps({"type": "ADDED", "object": {"metadata": {"resourceVersion": "7"}}}))
    assert (change.type, change.resource_version) == ("ADDED", "7")


@pytest.mark.parametrize(
    "line", ["", "{}", "[]", "null", '{"type": "ADDED", "object": {}}', '{"type": "ERROR"}', "<html>"]
)
def test_a_line_that_is_no_change(line: str) -> None:
    with pytest.raises(Retryable, match="no change"):
        change_of("GET", line)


@pytest.mark.parametrize(
    ("code", "kind", "status"), [(410, NotFound, 410), (500, Retryable, 500), (None, Retryable, 500)]
)
def test_an_error_of_the_server(code: int | None, kind: type[KubeError], status: int) -> None:
    value = {"kind": "Status", "code": code, "reason": "Expired", "message": "too old resource version"}
    with pytest.raises(kind, match="too old resource version") as found:
        change_of("GET", json.dumps({"type": "ERROR", "object": value}))
    assert found.value.status == status


def test_bytes_that_are_no_text_are_no_change() -> None:
    (line,) = lines_of([b"\xff\xfe\n"])
    with pytest.raises(Retryable, match="no change"):
        change_of("GET", line)
