import copy
import json
from typing import Any

import pytest
from dgdr_api.base import wire
from dgdr_publisher.errors import UnmappedValueError
from dgdr_publisher.materialize.role_rules import ROLE_RULES
from dgdr_publisher.materialize.table import leaves, materialize
from dgdr_publisher.render.context import build_context, template_of
from dgdr_publisher.render.settings import deployment_of
from dgdr_publisher.render.templates import render_template
from dgdr_publisher.rendering import render_candidate

from tests.publisher.cases import CASES
from tests.publisher.samples import DISAGG, evaluated, role, spec


@pytest.mark.parametrize("name", CASES)
def test_every_leaf_of_what_was_evaluated_has_a_row(name: str) -> None:
    candidate, request = CASES[name]
    rows = render_candidate(candidate, request, "qwen").materialization
    named = {row.parameter for row in rows}
    document = _set(wire(candidate.replay_spec))
    for header in ("apiVersion", "kind"):
        del document[header]
    roles = document.pop("roles")
    expected = {parameter for parameter, _ in leaves(document)} | {"model"}
    expected |= {f"parameters.{key}" for key in candidate.candidate.parameters}
    expected |= {f"{one['kind']}.{parameter}" for one in roles for parameter, _ in leaves(one)}
    assert named == expected
    assert len(rows) <= 256
    assert all((row.destination is None) != (row.reason is None) for row in rows)


def _set(value: Any) -> Any:
    """The value without its nulls: names that are there for readers, with nothing evaluated behind them."""
    if isinstance(value, dict):
        return {key: _set(item) for key, item in value.items() if item is not None}
    return [_set(item) for item in value] if isinstance(value, list) else value


def test_a_null_among_the_parameters_is_a_value_and_has_a_row() -> None:
    base = evaluated(role("agg"))
    parameters = base.candidate.parameters | {"note": None}
    candidate = base.model_copy(update={"candidate": base.candidate.model_copy(update={"parameters": parameters})})
    rows = render_candidate(candidate, spec(), "qwen").materialization
    assert [(row.parameter, row.value) for row in rows if row.value == "null"] == [("parameters.note", "null")]


def _resolve(document: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/")
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


def test_rows_of_a_role_name_place_and_value() -> None:
    rendered = render_candidate(DISAGG, spec(), "qwen")
    found = {row.parameter: row for row in rendered.materialization}
    for parameter, value, expected in (
        ("decode.shape.tp", 2, "2"),
        ("decode.workers", 4, 4),
        ("prefill.gpusPerWorker", 1, "1"),
        ("prefill.memoryFraction", 0.92, "0.92"),
        ("decode.engine.enablePrefixCaching", False, "--no-enable-prefix-caching"),
        ("router.mode", "roundRobin", "round-robin"),
        ("decode.engineVersion", "0.26.0", "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.2"),
    ):
        row = found[parameter]
        assert json.loads(row.value) == value
        assert row.destination is not None
        assert _resolve(rendered.dgd, row.destination) == expected
    assert found["decode.engine.numGpuBlocks"].reason == (
        "measured by the engine at start from the memory fraction; the estimate is in evaluation.memory"
    )
    assert found["seed"].reason == "evaluation input; no field of a deployment"


def test_sglang_limits_of_the_engine_are_those_of_a_rank_times_ranks() -> None:
    candidate, request = CASES["sglang_0516_disagg_tep_dep"]
    rendered = render_candidate(candidate, request, "qwen")
    found = {row.parameter: row.destination for row in rendered.materialization}
    destination = found["decode.engine.maxNumSeqs"]
    assert destination is not None
    assert _resolve(rendered.dgd, destination) == str(256 * 8)


def _rendered() -> dict[str, Any]:
    deployment = deployment_of(spec(), DISAGG)
    template = template_of(DISAGG, deployment)
    return render_template(template, build_context(DISAGG, deployment, template, dgd_name="qwen"))


@pytest.mark.parametrize(
    ("flag", "parameter"),
    [
        ("--max-num-seqs", "prefill.engine.maxNumSeqs"),
        ("--block-size", "prefill.engine.blockSize"),
        ("--kv-transfer-config", "prefill.kind"),
        ("--enable-chunked-prefill", "prefill.engine.enableChunkedPrefill"),
        ("--served-model-name", "model"),
    ],
)
def test_an_option_that_a_template_drops_is_an_error(flag: str, parameter: str) -> None:
    dgd = _rendered()
    arguments = dgd["spec"]["components"][1]["podTemplate"]["spec"]["containers"][0]["args"]
    arguments.remove(flag)
    with pytest.raises(UnmappedValueError) as caught:
        materialize(dgd, DISAGG)
    assert caught.value.parameter == parameter
    assert flag in caught.value.cause


def test_an_option_that_a_template_changes_is_an_error() -> None:
    dgd = copy.deepcopy(_rendered())
    arguments = dgd["spec"]["components"][2]["podTemplate"]["spec"]["containers"][0]["args"]
    arguments[arguments.index("--max-num-seqs") + 1] = "512"
    with pytest.raises(UnmappedValueError, match=r"decode\.engine\.maxNumSeqs = 256 .* is 512, not 256"):
        materialize(dgd, DISAGG)


def test_a_value_without_a_rule_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {name: rule for name, rule in ROLE_RULES["vllm"].items() if name != "engine.blockSize"}
    monkeypatch.setattr("dgdr_publisher.materialize.table.ROLE_RULES", {"vllm": rules})
    with pytest.raises(UnmappedValueError, match=r"prefill\.engine\.blockSize = 64 .* no rule of vllm"):
        materialize(_rendered(), DISAGG)


def test_a_component_that_is_missing_is_an_error() -> None:
    dgd = _rendered()
    del dgd["spec"]["components"][2]
    with pytest.raises(UnmappedValueError, match="0 components have type decode"):
        materialize(dgd, DISAGG)


def test_parameters_stay_in_the_candidate() -> None:
    rows = render_candidate(evaluated(role("agg")), spec(), "qwen").materialization
    reasons = {row.reason for row in rows if row.parameter.startswith("parameters.")}
    assert reasons == {"evaluation input; kept in the candidate's spec.parameters"}
