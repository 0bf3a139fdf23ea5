import contextlib
import json
from typing import Any

import pytest
import yaml
from dgdr_api.base import wire
from dgdr_api.document import MAX_TEXT_BYTES, read_document
from dgdr_api.errors import InvalidRequest, Problem
from dgdr_api.parse import parse_request, read, request_of
from dgdr_api.replay_spec import ReplaySpec
from hypothesis import given
from hypothesis import strategies as st

from tests.api.objects import MINIMAL_REQUEST, changed, minimal_request, request

TEXT = yaml.safe_dump(MINIMAL_REQUEST, sort_keys=False)


def refused(text: str) -> tuple[Problem, ...]:
    with pytest.raises(InvalidRequest) as error:
        parse_request(text)
    said = str(error.value)
    assert said
    for leaked in ("pydantic", "Input should", "https://", "Traceback"):
        assert leaked not in said
    return error.value.problems


def test_what_a_user_wrote_comes_back() -> None:
    assert wire(parse_request(TEXT), given_only=True) == MINIMAL_REQUEST


def test_json_is_read_too() -> None:
    assert parse_request(json.dumps(MINIMAL_REQUEST, indent="\t")) == parse_request(TEXT)
    assert request_of(minimal_request()) == parse_request(TEXT)


def test_the_upstream_group_is_read_as_ours() -> None:
    upstream = parse_request(TEXT.replace("sweeper.dgdr.dev/v1beta2", "nvidia.com/v1beta2"))

    assert upstream == parse_request(TEXT)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "found nothing"),
        ("- a\n- b\n", "found a list"),
        ("hello", 'found "hello"'),
        ("12", "found 12"),
        ("a: [1", "no valid YAML: line 2, column 1"),
        ("a: b: c", "no valid YAML: line 1, column 5"),
        ("a: 'b", "no valid YAML: line 1"),
        ("a:\n\tb: 1", "no valid YAML: line 2, column 1"),
        ("a: \x00", "no valid YAML"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1: a second document"),
        ("a: 1\nb: 2\na: 3\n", "line 3, column 1: key a stands twice"),
        ('{"a": 1, "a": 2}', "key a stands twice"),
        ("a: &x 1\nb: *x\n", "line 1, column 4: anchors and aliases"),
        ("a: !!python/object:os.system x", "line 1, column 4: tags such as tag:yaml.org,2002:python/object:os.system"),
        ("? [a, b]\n: 1", "a key must be a text"),
        ("[" * 100 + "]" * 100, "nested more than 64 levels deep"),
        ("[" * 5000, "nesting depth"),
        ("{a: " * 200_000, "nest"),
        ("a: " + "9" * 100_000, "does not fit in 64 bits"),
        ("# " + "x" * MAX_TEXT_BYTES, "at most 1,048,576 are read"),
    ],
)
def test_a_text_that_is_no_document(text: str, said: str) -> None:
    problems = refused(text)

    assert said in str(problems[0])
    assert len(str(problems[0])) < 300


def test_scalars_mean_what_json_would_mean() -> None:
    text = "a: yes|b: 1:30|c: 2026-01-01|d: 1_000|e: 1e3|f: .inf|g: ~|h: 0x10|i: '1'|j: on|k: 1.|l: -.5|m: true"

    assert read_document(text.replace("|", "\n")) == {
        "a": "yes",
        "b": "1:30",
        "c": "2026-01-01",
        "d": "1_000",
        "e": 1000.0,
        "f": float("inf"),
        "g": None,
        "h": 16,
        "i": "1",
        "j": "on",
        "k": 1.0,
        "l": -0.5,
        "m": True,
    }


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        (("spec.hardware.gpu.budgt", 8), "spec.hardware.gpu.budgt", "did you mean budget"),
        (("spec.Backends", []), "spec.Backends", "did you mean backends"),
        (("spec.zzzzz", 1), "spec.zzzzz", "known are modelRef, backends"),
        (("extra", 1), "extra", "known are apiVersion, kind, metadata, spec, status"),
        (("metadata.nam", "x"), "metadata.nam", "did you mean name"),
        (("spec.model_ref", {}), "spec.model_ref", "did you mean modelRef"),
        (("spec.search", {"router": [{"modus": "kv"}]}), "spec.search.router[0].modus", "did you mean mode"),
        (("kind", "DynamoGraphDeploymentRun"), "kind", "must be DynamoGraphDeploymentRequest"),
        (
            ("apiVersion", "nvidia.com/v1beta1"),
            "apiVersion",
            "must be sweeper.dgdr.dev/v1beta2 (or nvidia.com/v1beta2)",
        ),
        (("apiVersion", ...), "apiVersion", "found nothing"),
        (("metadata", ...), "metadata", "is required"),
        (("metadata", {}), "metadata.name", "is required"),
        (("spec", ...), "spec", "is required"),
        (("spec", []), "spec", "must be a mapping, found []"),
        (("spec.hardware", "x"), "spec.hardware", 'must be a mapping, found "x"'),
        (("spec.backends", "vllm"), "spec.backends", 'must be a list, found "vllm"'),
        (("spec.search", {"parameters": []}), "spec.search.parameters", "must be a mapping, found []"),
        (("spec.modelRef.name", 5), "spec.modelRef.name", "must be a text, found 5; put it in quotes"),
        (("spec.workload.static.isl", "3000"), "spec.workload.static.isl", 'must be a whole number, found "3000"'),
        (("spec.workload.static.isl", True), "spec.workload.static.isl", "must be a whole number, found true"),
        (("spec.workload.static.isl", 0.5), "spec.workload.static.isl", "must be a whole number, found 0.5"),
        (("spec.workload.static.isl", float("nan")), "spec.workload.static.isl", "nan is not a finite number"),
        (("spec.workload.static.requestRate", float("inf")), "spec.workload.static.requestRate", "not a finite number"),
        (("spec.workload.static.isl", 2**63), "spec.workload.static.isl", "does not fit in 64 bits"),
        (("spec.workload.static.lengthSpread", 1e300), "spec.workload.static.lengthSpread", "does not fit in 64 bits"),
        (("spec.backends", ["vllm", float("nan")]), "spec.backends[1]", "not a finite number"),
        (("spec.search", {"parameters": {"a": [1, float("nan")]}}), "spec.search.parameters.a[1]", "not a finite"),
        (("spec.search", {"planner": {}}), "spec.search.planner.mode", "is required"),
    ],
)
def test_a_document_that_is_no_request(change: tuple[str, Any], field: str, said: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        request_of(changed(MINIMAL_REQUEST, change))

    problems = {problem.field: problem.message for problem in error.value.problems}
    assert said in problems[field]
    assert str(error.value).startswith(f"{error.value.problems[0].field}: ")
    assert "Input should" not in str(error.value)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    wrong = request(("hardware.gpu.budget", 0), ("backends", ["tgi"]), ("objective", {"mode": "optimize"}))

    with pytest.raises(InvalidRequest) as error:
        request_of(wrong)

    assert {problem.field for problem in error.value.problems} == {
        "spec.hardware.gpu.budget",
        "spec.backends[0]",
        "spec.objective.metric",
    }


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        (
            (("hardware.gpu.minBudget", 20),),
            "spec.hardware.gpu.minBudget",
            "minBudget must not exceed budget (minBudget 20, budget 16)",
        ),
        (
            (("workload.static.requestRate", 2.5),),
            "spec.workload.static",
            (
                "give exactly one of concurrency, requestRate, kvLoadRatio, kvLoadRatioRange and saturated "
                "(found concurrency and requestRate)"
            ),
        ),
        ((("workload", {}),), "spec.workload", "give exactly one of static and trace (found none)"),
        (
            (("objective.sla", {"ttftMs": 1000}),),
            "spec.objective.sla",
            "give either e2eMs alone, or ttftMs and itlMs together (found ttftMs)",
        ),
        (
            (("workload.static.requests", 100), ("workload.static.warmupRequests", 200)),
            "spec.workload.static.warmupRequests",
            "warmupRequests must be below requests (warmupRequests 200, requests 100)",
        ),
        (
            (
                ("workload.static", {"isl": 1, "osl": 1, "kvLoadRatioRange": {"min": 2, "max": 0.5}}),
                ("objective", {"mode": "pareto"}),
            ),
            "spec.workload.static.kvLoadRatioRange.min",
            "min must be below max (min 2, max 0.5)",
        ),
        (
            (("modelRef.name", "a b"),),
            "spec.modelRef.name",
            (
                "must be letters, digits and . _ / : @ + - (none of : @ + - first), and not None: it becomes "
                'an argument, found "a b"'
            ),
        ),
        (
            (("runtime.image", "X" * 100),),
            "spec.runtime.image",
            (
                "must be an image reference [registry/]path[:tag][@digest]: the path in lower case, at most 255 "
                f'characters before the tag, a digest of sha256 or sha512, found "{"X" * 56}...'
            ),
        ),
        (
            (("objective.sla", {"ttftMs": 1e300, "itlMs": 1}),),
            "spec.objective.sla.ttftMs",
            "1e+300 does not fit in 64 bits",
        ),
    ],
)
def test_a_message_holds_the_values_that_it_is_about(
    changes: tuple[tuple[str, Any], ...], field: str, said: str
) -> None:
    with pytest.raises(InvalidRequest) as error:
        request_of(request(*changes))

    assert [(problem.field, problem.message) for problem in error.value.problems] == [(field, said)]


def test_null_is_absent_as_for_the_api_server() -> None:
    spec = request(("suspend", None), ("search", {"router": [{"mode": None}], "parameters": {"a": None}}))

    parsed = request_of(spec).spec

    assert parsed.suspend is False
    assert parsed.search.router[0].mode == "roundRobin"
    assert parsed.search.parameters == {"a": None}


def test_what_kubectl_adds_is_read() -> None:
    meta = {
        "name": "qwen",
        "creationTimestamp": None,
        "resourceVersion": "1",
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
    }

    assert request_of(changed(MINIMAL_REQUEST, ("metadata", meta))).metadata.resource_version == "1"


def test_whole_numbers_may_be_written_with_a_point_as_for_the_api_server() -> None:
    assert request_of(request(("hardware.gpu.budget", 8.0))).spec.hardware.gpu.budget == 8


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    with contextlib.suppress(InvalidRequest):
        read_document(text)


def test_a_replay_spec_may_hold_nulls() -> None:
    with pytest.raises(InvalidRequest) as error:
        read(ReplaySpec, {"planner": None, "roles": [{"timing": {"type": "magic"}}]})

    problems = {problem.field: problem.message for problem in error.value.problems}
    assert "planner" not in problems
    assert "must be one of" in problems["roles[0].timing"]
