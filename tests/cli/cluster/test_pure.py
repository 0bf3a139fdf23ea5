"""What needs no cluster: ages, views, differences, what became of a request, harmless text."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dgdr_cli.cluster.answer import Answered, Refused, Waits, answer_of
from dgdr_cli.cluster.differences import Difference, differences
from dgdr_cli.cluster.objects import age, at, list_at, text_at
from dgdr_cli.cluster.outcome import exit_code
from dgdr_cli.cluster.promotion import changes
from dgdr_cli.cluster.view import line_of, view_of
from dgdr_cli.plain_text import plain, plain_data

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("passed", "shown"),
    [
        (timedelta(seconds=0), "0s"),
        (timedelta(seconds=59), "59s"),
        (timedelta(seconds=61), "1m1s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(minutes=59, seconds=5), "59m"),
        (timedelta(hours=2, minutes=5), "2h5m"),
        (timedelta(hours=23, minutes=5), "23h"),
        (timedelta(days=2, hours=1, minutes=9), "2d1h"),
        (timedelta(days=400), "400d"),
        (timedelta(seconds=-5), "0s"),
    ],
)
def test_ages(passed: timedelta, shown: str) -> None:
    assert age({"metadata": {"creationTimestamp": (NOW - passed).strftime("%Y-%m-%dT%H:%M:%SZ")}}, NOW) == shown


@pytest.mark.parametrize("stamp", [None, "", "yesterday", 7, "2026-01-02"])
def test_an_age_that_nobody_knows(stamp: object) -> None:
    assert age({"metadata": {"creationTimestamp": stamp}}, NOW) == ""


def test_reading_what_is_not_as_expected() -> None:
    assert at({"a": {"b": 0}}, "a", "b", default=5) == 0
    assert at({"a": None}, "a", "b", default=5) == 5
    assert text_at({"a": {"b": {}}}, "a", "b") == ""
    assert list_at({"a": {"b": "x"}}, "a", "b") == []


def asked(generation: int = 2, observed: int | None = 2, accepted: str | None = "True", **more: Any) -> dict[str, Any]:
    status: dict[str, Any] = {"observedGeneration": observed, **more.pop("status", {})}
    if accepted:
        status["conditions"] = [{"type": "Accepted", "status": accepted, "reason": "Why", "message": "words"}]
    return {"metadata": {"generation": generation}, "spec": more, "status": status}


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        ({"metadata": {"generation": 1}}, Waits("generation 1 waits for the operator")),
        (asked(observed=1), Waits("generation 2 waits for the operator")),
        (
            asked(observed=1, accepted="False", status={"activeRunRef": {"name": "r1"}}),
            Waits("generation 2 waits for the operator: run r1 ends first"),
        ),
        (asked(accepted="False"), Refused("Why: words")),
        (asked(status={"activeRunRef": {"name": "r2"}, "recentRunRefs": [{"name": "r3"}]}), Answered("r2", 2, "words")),
        (asked(status={"recentRunRefs": [{"name": "r3"}, {"name": "r2"}]}), Answered("r3", 2, "words")),
        (asked(accepted=None), Waits("generation 2 has no run yet")),
    ],
)
def test_what_became_of_a_request(request_: dict[str, Any], answer: Waits | Refused | Answered) -> None:
    assert answer_of(request_) == answer


def test_the_line_of_a_run_that_says_nothing() -> None:
    assert line_of(view_of({"metadata": {"name": "r"}})) == "r Pending"
    assert line_of(view_of({"metadata": {"name": "r"}, "status": {"progress": 7, "best": []}})) == "r Pending"


def ended(reason: str, phase: str, **status: Any) -> dict[str, Any]:
    return {
        "status": {"phase": phase, "conditions": [{"type": "Completed", "status": "True", "reason": reason}], **status}
    }


def test_an_end_that_a_later_version_invents() -> None:
    assert exit_code(ended("New", "Succeeded")) == 3
    assert exit_code(ended("New", "Succeeded", candidateRefs=[{"name": "a"}])) == 0
    assert exit_code(ended("New", "Failed", candidateRefs=[{"name": "a"}])) == 4
    with pytest.raises(ValueError, match="has not ended"):
        exit_code({})


def test_differences_of_values_and_of_lists() -> None:
    left = {"same": 1, "a/b": [1, 2], "gone": None, "one": 1.0, "t": {"x": 1}}
    right = {"same": 1, "a/b": [1, 3, 4], "one": 1, "t": "x"}
    assert list(differences(left, right, "/s")) == [
        Difference("/s/a~1b/1", "2", "3"),
        Difference("/s/a~1b/2", None, "4"),
        Difference("/s/t", '{"x":1}', '"x"'),
    ]


def test_differences_of_what_has_no_canonical_form() -> None:
    assert list(differences({"a": 1e300, "b": 10**20}, {"a": 1e300, "b": 7})) == [
        Difference("/b", "100000000000000000000", "7"),
    ]
    left, right = [{"name": {"a": 1}}], [{"name": {"a": 2}}]
    assert list(differences(left, right)) == [Difference("/0/name/a", "1", "2")]


def test_differences_of_things_with_names() -> None:
    left = [{"name": "a", "n": 1}, {"name": "b", "n": 1}]
    right = [{"name": "b", "n": 2}, {"name": "c", "n": 3}]
    assert list(differences(left, right)) == [
        Difference("/0/name", '"a"', None),
        Difference("/0/n", "1", None),
        Difference("/1/n", "1", "2"),
        Difference("/1/name", None, '"c"'),
        Difference("/1/n", None, "3"),
    ]


def test_what_only_one_side_has_is_told_field_by_field() -> None:
    worker = {"args": ["--tp", "2", "--eager"], "env": [{"name": "A", "value": "1"}], "none": {}, "ports": [1, 2]}
    assert list(differences({}, {"a": worker})) == [
        Difference("/a/args/1", None, '"2"', "--tp"),
        Difference("/a/args/2", None, "set", "--eager"),
        Difference("/a/env/0/name", None, '"A"'),
        Difference("/a/env/0/value", None, '"1"'),
        Difference("/a/none", None, "{}"),
        Difference("/a/ports/0", None, "1"),
        Difference("/a/ports/1", None, "2"),
    ]
    assert list(differences({"a": {}}, {})) == [Difference("/a", "{}", None)]


def test_differences_of_arguments() -> None:
    left = ["--tp", "1", "--chunked", "--max", "8"]
    right = ["--max", "9", "--tp", "1", "--eager"]
    assert list(differences(left, right)) == [
        Difference("/2", "set", None, "--chunked"),
        Difference("/4", '"8"', '"9"', "--max"),
        Difference("/4", None, "set", "--eager"),
    ]
    assert list(differences(["--a", "--a"], ["--a", "x"])) == [Difference("/1", '"--a"', '"x"')]
    assert list(differences(["-m", "x"], ["-m", "y"])) == [Difference("/1", '"x"', '"y"')]


def test_what_a_server_may_and_may_not_make_of_a_deployment() -> None:
    sent = {"a": 1.0, "b": [{"c": "x"}], "d~/": {}}
    assert list(changes(sent, {"a": 1, "b": [{"c": "x", "new": 1}], "d~/": {"new": 2}, "new": 3})) == []
    assert list(changes(sent, {"a": True, "b": [{"c": "x"}, {}]}, "/spec")) == [
        "/spec/a would be true, not 1",
        '/spec/b would be [{"c":"x"},{}], not [{"c":"x"}]',
        "/spec/d~0~1 would be dropped",
    ]


def test_harmless_text() -> None:
    assert plain("a\tb\nc") == "a\tb\nc"
    assert plain("\x1b[1m\x00\x7f\x9b\u202e\r") == "\\u001b[1m\\u0000\\u007f\\u009b\\u202e\\u000d"
    assert plain("grün 中 😀") == "grün 中 😀"
    assert plain_data('"\\u001b\x9b"') == '"\\u001b\\u009b"'
