"""Every field of a run that is mapped, and what search.parameters may say."""

import re
from typing import Any

import pytest
from dgdr_api.errors import InvalidRequest
from dgdr_api.run import RunSpec
from dgdr_job.search.config import SearchSpace, SmartSearchConfig
from dgdr_job.search.mapper import OWNER, search_config
from pydantic import ValidationError

from tests.job.search.runs import run, unbound


def mapped(spec: RunSpec) -> SmartSearchConfig:
    return search_config(spec, {"vllm": "0.24.0"})


def with_parameters(parameters: dict[str, Any]) -> SmartSearchConfig:
    return mapped(run(search={"parameters": parameters}))


def refusal(parameters: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(InvalidRequest) as refused:
        with_parameters(parameters)
    (problem,) = refused.value.problems
    return problem.field, problem.message


def test_the_search_space() -> None:
    space = mapped(run()).search_space
    assert space.model_name == "Qwen/Qwen3-32B"
    assert space.hardware_sku == "h200_sxm"
    assert space.deployment_mode == ("agg", "disagg")
    assert space.backend == ("vllm",)
    assert space.backend_version == {"vllm": "0.24.0"}
    assert (space.gpu_budget, space.min_gpu_budget, space.gpus_per_node) == (16, 1, 8)
    assert space.context_length is None
    assert space.gpus_per_worker == (1, 2, 4, 8, 16)


def test_limits_of_the_hardware() -> None:
    space = mapped(
        run(hardware={"gpu": {"budget": 64, "minBudget": 8, "perNode": 4, "budgetBySku": {"H200": 48}}})
    ).search_space
    assert (space.gpu_budget, space.min_gpu_budget, space.gpus_per_node) == (64, 8, 4)
    assert space.gpu_budget_by_sku == {"h200_sxm": 48}


def test_each_role_has_its_gpu_type() -> None:
    space = mapped(run(hardware={"gpu": {"prefillSku": "H100", "decodeSku": "GB200"}})).search_space
    assert [space.sku_of(kind) for kind in ("agg", "prefill", "decode")] == ["h200_sxm", "h100_sxm", "gb200"]
    assert [space.gpus_per_node_of(kind) for kind in ("agg", "prefill", "decode")] == [8, 8, 4]
    same = mapped(run(hardware={"gpu": {"prefillSku": "H200", "decodeSku": "h200_sxm"}}))
    assert same == mapped(run())


def native(**space: Any) -> SearchSpace:
    base = {"model_name": "m", "hardware_sku": "h200_sxm", "deployment_mode": ["disagg"], "backend": ["vllm", "sglang"]}
    return SearchSpace.model_validate(base | space)


def test_in_the_native_form_the_data_version_may_be_left_out() -> None:
    assert native().backend_version == {"vllm": "0.24.0", "sglang": "0.5.14"}
    assert native(backend_version="0.24.0", backend=["vllm"]).backend_version == {"vllm": "0.24.0"}
    with pytest.raises(
        ValidationError, match=r"is not the same on every GPU type \(h200_sxm 0\.24\.0, a100_sxm 0\.14\.0\)"
    ):
        native(decode_hardware_sku="a100_sxm")
    own = native(decode_hardware_sku="a100_sxm", backend_version={"vllm": "9"}, backend=["vllm"])
    assert own.backend_version == {"vllm": "9"}
    assert native(backend_version={"vllm": "9"}).backend_version == {"vllm": "9", "sglang": "0.5.14"}
    with pytest.raises(ValidationError, match="no SGLang performance data for b60: b60 has data for vllm only"):
        native(decode_hardware_sku="b60", backend_version={"vllm": "9"})


def test_a_gpu_type_of_its_own_needs_the_role() -> None:
    with pytest.raises(ValidationError, match="prefill_hardware_sku needs disagg in deployment_mode"):
        native(deployment_mode=["agg"], prefill_hardware_sku="h100_sxm")


def test_topologies_and_the_longest_sequence() -> None:
    space = mapped(run(search={"topologies": ["disagg"]}, workload={"maxSequenceLength": 8192})).search_space
    assert (space.deployment_mode, space.context_length) == (("disagg",), 8192)


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        ({"saturated": True}, (None, None, True)),
        ({"saturated": None, "concurrency": 64}, (64, None, False)),
        ({"saturated": None, "requestRate": 2.5}, (None, 2.5, False)),
    ],
)
def test_the_load(load: dict[str, Any], expected: tuple[int | None, float | None, bool]) -> None:
    workload = mapped(run(workload={"static": load})).workload
    assert (workload.isl, workload.osl) == (3000, 300)
    assert (workload.concurrency, workload.request_rate, workload.saturated) == expected


def test_the_objective() -> None:
    goal = mapped(run(objective={"gpuHourCost": {"H200": 2.5}, "sla": {"strict": False}})).goal
    assert (goal.metrics, goal.pareto, goal.gpu_cost_per_hour) == (("throughputPerGpu",), False, {"h200_sxm": 2.5})
    assert (goal.sla.ttft_ms, goal.sla.itl_ms, goal.sla.e2e_ms, goal.sla.strict) == (1000, 40, None, False)
    pareto = mapped(unbound(objective={"mode": "pareto", "metric": None})).goal
    assert (pareto.metrics, pareto.pareto) == (("throughputPerGpu", "throughputPerUser"), True)
    assert (pareto.sla.ttft_ms, pareto.gpu_cost_per_hour) == (None, {})
    e2e = mapped(run(objective={"sla": {"ttftMs": None, "itlMs": None, "e2eMs": 9000}})).goal.sla
    assert (e2e.ttft_ms, e2e.itl_ms, e2e.e2e_ms) == (None, None, 9000)


def test_how_it_is_searched() -> None:
    sweep = mapped(run(search={"budget": {"maxDuration": "1m30s"}}, recommendation={"maxCandidates": 7})).sweep
    assert (sweep.fidelity, sweep.max_seconds, sweep.reserve, sweep.seed) == ("static", 90.0, 28, 42)
    assert mapped(run()).sweep.max_seconds is None


def test_parameters_add_to_the_mapped_values_key_by_key() -> None:
    config = with_parameters(
        {
            "sweep": {"seed": 7},
            "search_space": {"gpus_per_worker": [4, 2, 4], "max_prefill_gpus": 8},
            "rate_matching": {"disagg_ttft": 2},
        }
    )
    assert (config.sweep.seed, config.sweep.reserve) == (7, 20)
    assert (config.search_space.gpus_per_worker, config.search_space.gpu_budget) == ((2, 4), 16)
    assert config.search_space.max_prefill_gpus == 8
    assert (config.rate_matching.disagg_ttft, config.rate_matching.decode_rate) == (2.0, 0.92)
    assert config.rate_matching.agg_ctx_tokens == (512, 1024, 2048, 3000, 4096, 6000)


def test_budgets_of_the_request_s_own_are_the_only_ones() -> None:
    own = with_parameters({"search_space": {"agg_max_num_batched_tokens": [2048]}})
    assert (own.search_space.agg_max_num_batched_tokens, own.rate_matching.agg_ctx_tokens) == ((2048,), ())


@pytest.mark.parametrize(
    ("isl", "prefill"),
    [
        (32768, (8192, 16384, 32768)),
        (32769, (8192, 16384, 32768, 65536)),
        (100_000, (8192, 16384, 32768, 131072)),
        (2**31 - 1, (8192, 16384, 32768, 2**31 - 1)),
    ],
)
def test_a_prompt_beyond_the_list_gets_a_budget_that_covers_it(isl: int, prefill: tuple[int, ...]) -> None:
    config = mapped(run(workload={"static": {"isl": isl}}))
    assert config.search_space.prefill_max_num_batched_tokens == prefill
    assert config.search_space.agg_max_num_batched_tokens == prefill
    assert config.search_space.decode_max_num_batched_tokens == (8192,)
    assert max(config.rate_matching.agg_ctx_tokens) == min(2 * isl, 2**31 - 1)


def test_an_unknown_key_is_named_with_its_neighbours() -> None:
    field, message = refusal({"search_space": {"gpus_per_workers": [1]}})
    assert field == "search.parameters.search_space.gpus_per_workers"
    assert message.startswith("is no key of the engine; near: gpus_per_worker")
    field, message = refusal({"zzz": 1})
    assert field == "search.parameters.zzz"
    assert message == (
        "is no key of the engine; known: search_space, workload, goal, sweep, adapters, rate_matching, runtime"
    )


@pytest.mark.parametrize("key", sorted(OWNER))
def test_a_key_that_a_field_owns_names_that_field(key: str) -> None:
    first, _, second = key.partition(".")
    field, message = refusal({first: {second: 1} if second else {}})
    assert field == f"search.parameters.{key}"
    assert message == f"is set by {OWNER[key]}; change that field instead"


@pytest.mark.parametrize(
    ("parameters", "field", "message"),
    [
        ({"sweep": {"seed": -1}}, "sweep.seed", "must be at least 0, found -1"),
        ({"sweep": {"seed": "7"}}, "sweep.seed", 'must be a whole number, found "7"'),
        ({"sweep": {"seed": True}}, "sweep.seed", "must be a whole number, found true"),
        ({"sweep": {"seed": 1.5}}, "sweep.seed", "must be a whole number, found 1.5"),
        ({"sweep": {"seed": None}}, "sweep.seed", "must be a whole number, found null"),
        ({"sweep": 3}, "sweep", "must be an object"),
        ({"rate_matching": {"decode_rate": 1.2}}, "rate_matching.decode_rate", "must be at most 1, found 1.2"),
        ({"rate_matching": {"decode_rate": 0}}, "rate_matching.decode_rate", "must be above 0, found 0"),
        ({"rate_matching": {"disagg_ttft": "x"}}, "rate_matching.disagg_ttft", 'must be a number, found "x"'),
        (
            {"rate_matching": {"prefill_batches": []}},
            "rate_matching.prefill_batches",
            "has 0 values, at least 1 are needed, found []",
        ),
        (
            {"search_space": {"gpus_per_worker": [1, 0]}},
            "search_space.gpus_per_worker.1",
            "must be at least 1, found 0",
        ),
        ({"search_space": {"gpus_per_worker": 4}}, "search_space.gpus_per_worker", "must be a list, found 4"),
        (
            {"search_space": {"agg_gpu_memory_utilization": 1.0}},
            "search_space.agg_gpu_memory_utilization",
            "must be below 1, found 1.0",
        ),
        (
            {"search_space": {"agg_enable_prefix_caching": ["yes"]}},
            "search_space.agg_enable_prefix_caching.0",
            'must be true or false, found "yes"',
        ),
        ({"search_space": {"max_prefill_gpus": 0}}, "search_space.max_prefill_gpus", "must be at least 1, found 0"),
    ],
)
def test_a_wrong_value_is_told_in_our_own_words(parameters: dict[str, Any], field: str, message: str) -> None:
    assert refusal(parameters) == (f"search.parameters.{field}", message)


def test_no_refusal_shows_another_library_or_an_address() -> None:
    with pytest.raises(InvalidRequest) as refused:
        with_parameters({"sweep": {"seed": [1] * 500}, "rate_matching": {"decode_rate": {}, "prefill_rate": 9}})
    text = str(refused.value)
    assert len(refused.value.problems) == 3
    assert not re.search(r"pydantic|https?:|Input should|type=", text)
    assert all(len(line) < 200 for line in text.splitlines())


def test_a_bound_below_the_request_is_refused_with_the_numbers() -> None:
    with pytest.raises(InvalidRequest) as refused:
        mapped(run(workload={"maxSequenceLength": 3299}))
    assert str(refused.value) == (
        "workload.maxSequenceLength: is 3,299, but isl 3,000 + osl 300 = 3,300; give at least that"
    )
    assert mapped(run(workload={"maxSequenceLength": 3300})).search_space.context_length == 3300
