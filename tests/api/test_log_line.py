import json
import logging

import pytest
from dgdr_api.log_line import JsonFormatter


def record(message: str, **ids: str) -> logging.LogRecord:
    made = logging.LogRecord("room", logging.WARNING, "file", 1, message, None, None)
    made.created = 1_767_225_600.25
    vars(made).update(ids)
    return made


def test_a_line_says_when_what_and_about_what() -> None:
    line = JsonFormatter(run="qwen-run-1-abcd").format(record("two\nlines 中", candidate="qwen-g1-abcd-01234567"))

    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2026-01-01T00:00:00.250+00:00",
        "level": "warning",
        "logger": "room",
        "message": "two\nlines 中",
        "run": "qwen-run-1-abcd",
        "candidate": "qwen-g1-abcd-01234567",
    }


def test_a_record_may_be_about_another_run() -> None:
    assert json.loads(JsonFormatter(run="a").format(record("x", run="b")))["run"] == "b"


def test_an_exception_is_part_of_its_line() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 / 0
    failed = record("failed")
    failed.exc_info = (caught.type, caught.value, caught.tb)

    assert "ZeroDivisionError" in json.loads(JsonFormatter().format(failed))["exception"]
