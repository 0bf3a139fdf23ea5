"""Explicit parallel configurations: what each rule says, which roles they reach, and how pp and cp are timed."""

from typing import Any

import pytest
from dgdr_api.errors import InvalidRequest
from dgdr_api.expressible import RoleForm, shape_problems
from dgdr_api.run import RunSpec
from dgdr_api.shape import Shape
from dgdr_job.catalog.cache import DiskCache
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Unsupported
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.main.engine import check
from dgdr_job.search.branches import plan_branch
from dgdr_job.search.mapper import search_config
from dgdr_job.search.resolved import version_chains
from dgdr_job.search.space_report import space_report
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.job.search.runs import run, search, unbound

MOE = "Qwen/Qwen3-30B-A3B"
FIELD = "search.parameters.search_space.parallel_configs"
PINS = {"vllm": "0.24.0", "trtllm": "1.3.0rc20"}


def asked(*configs: dict[str, Any], backend: str = "vllm", model: str = MOE, **changes: Any) -> RunSpec:
    given_ = {"parameters": {"search_space": {"parallel_configs": list(configs)}}, **changes.pop("search", {})}
    pins = {name: version for name, version in PINS.items() if name in changes.get("backends", [backend])}
    return unbound(
        backend=backend,
        modelRef={"name": model},
        search=given_,
        runtime={"performanceDataVersion": pins or None},
        **changes,
    )


ILLEGAL: list[tuple[str, str, dict[str, Any], str]] = [
    ("vllm", "Qwen/Qwen3-32B", {"tp": 16, "pp": 3}, "64 layers do not split over pp 3"),
    ("vllm", "Qwen/Qwen3-32B", {"tp": 128}, "64 attention heads do not split over tp 128"),
    ("vllm", "Qwen/Qwen3-32B", {"tp": 3}, "tp 3 is no power of two"),
    ("vllm", "Qwen/Qwen3-32B", {"attention_dp": 2}, "a dense model has no attention data parallelism and no experts"),
    ("vllm", MOE, {"tp": 2, "attention_dp": 2}, "moeTp * moeEp = 1, but tp * attentionDp * cp = 4"),
    ("vllm", MOE, {"tp": 4, "moe_ep": 2}, "moe_tp * moe_ep = 2, but tp * attention_dp * cp = 4: they must be equal"),
    ("vllm", MOE, {"tp": 4, "moe_tp": 2, "moe_ep": 2}, "vllm: moeTp 2 with moeEp 2; experts are split one way only"),
    ("vllm", MOE, {"cp": 2, "moe_ep": 2}, "vllm: cp 2 has no form; only sglang has one"),
    ("sglang", MOE, {"tp": 2, "cp": 2, "moe_ep": 4}, "sglang: cp 2 needs tp 1 and attentionDp 1"),
    ("trtllm", MOE, {"tp": 2, "attention_dp": 2, "moe_ep": 4}, "trtllm: tp 2 with attentionDp 2"),
    ("sglang", MOE, {"attention_dp": 256, "moe_ep": 256}, "128 experts are fewer than moeEp 256"),
    ("vllm", "Qwen/Qwen3-235B-A22B-FP8", {"tp": 8, "moe_tp": 8}, "is no multiple of the fp8 block of 128"),
    ("vllm", "Qwen/Qwen3-32B", {"tp": 4, "pp": 16, "cp": 1}, ""),
    ("vllm", MOE, {"attention_dp": 12, "moe_ep": 12}, "12 GPUs are wider than a node of 8 and fill no whole number"),
    ("vllm", MOE, {"tp": 32, "pp": 1, "attention_dp": 1, "moe_ep": 32}, ""),
]


@pytest.mark.parametrize(("backend", "model", "config", "rule"), ILLEGAL, ids=[str(case[2]) for case in ILLEGAL])
def test_an_illegal_one_is_an_error_that_names_the_rule(
    catalog: Catalog, backend: str, model: str, config: dict[str, Any], rule: str
) -> None:
    spec = asked({"tp": 1}, config, backend=backend, model=model)
    if not rule:
        check(spec, catalog)
        return
    for ask in (lambda: check(spec, catalog), lambda: search(spec, catalog)):
        with pytest.raises(InvalidRequest) as refused:
            ask()
        (problem,) = refused.value.problems
        assert problem.field == f"{FIELD}[1]"
        assert rule in problem.message


@pytest.mark.parametrize(
    ("parameters", "field", "text"),
    [
        ({"parallel_configs": []}, "parallel_configs", "has 0 values, at least 1 are needed"),
        ({"parallel_configs": [{"tp": 0}]}, "parallel_configs.0.tp", "must be at least 1, found 0"),
        ({"parallel_configs": [{"tp": "2"}]}, "parallel_configs.0.tp", "must be a whole number"),
        ({"parallel_configs": [{"dp": 2}]}, "parallel_configs.0.dp", "is no key of the engine"),
        (
            {"parallel_configs": [{"tp": 2}], "gpus_per_worker": [2]},
            "",
            "gpus_per_worker and parallel_configs exclude each other",
        ),
    ],
)
def test_what_is_no_list_of_shapes_is_refused(parameters: dict[str, Any], field: str, text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check(run(search={"parameters": {"search_space": parameters}}))
    (problem,) = refused.value.problems
    assert problem.field.endswith(field)
    assert text in problem.message


def test_they_replace_the_patterns_once_each(catalog: Catalog) -> None:
    mixed = {"tp": 2, "attention_dp": 2, "moe_ep": 4}
    spec = asked(mixed, {"tp": 2, "moe_ep": 2}, mixed)
    for branch in space_report(catalog, spec, kv_gated=True)["branches"]:
        assert all(labels == ["tp2-ep2", "tp2-dp2-ep4"] for labels in branch["shapeLabels"].values())
    told = search(spec, catalog)
    assert {role.shape.label for each in told.reserve for role in each.candidate.roles} == {"tp2-ep2", "tp2-dp2-ep4"}


def test_a_shape_concerns_the_roles_and_backends_that_can_have_it(catalog: Catalog) -> None:
    spec = asked({"cp": 2, "moe_ep": 2}, {"tp": 2, "moe_ep": 2}, backend="sglang", backends=["sglang", "vllm"])
    branches = {each["name"]: each for each in space_report(catalog, spec, kv_gated=False)["branches"]}
    assert branches["sglang/disagg"]["shapeLabels"] == {"prefill": ["ep2-cp2", "tp2-ep2"], "decode": ["tp2-ep2"]}
    assert branches["vllm/disagg"]["shapeLabels"] == {"prefill": ["tp2-ep2"], "decode": ["tp2-ep2"]}
    (told,) = [each for each in branches["sglang/disagg"]["removed"] if each["detail"].startswith("decode shapes")]
    assert "ep2-cp2: sglang: cp 2 on a decode worker; it is for prefill" in told["detail"]


def test_one_that_no_role_of_the_request_can_have_is_an_error(catalog: Catalog) -> None:
    only_decode = asked({"cp": 2, "moe_ep": 2}, backend="vllm", search={"topologies": ["disagg"]})
    with pytest.raises(InvalidRequest, match="only sglang has one"):
        check(only_decode, catalog)


def test_pipeline_stages_run_a_batch_each(catalog: Catalog) -> None:
    """P = 1000 b dp pp / L and D = 1000 b dp pp / (tpot (osl - 1)), engine.md section 6, from the core's own times."""
    told = search(asked({"tp": 1, "pp": 2}, model="Qwen/Qwen3-32B"), catalog)
    worker = catalog.performance(PerfIdentity("Qwen/Qwen3-32B", "h200_sxm", "vllm", "0.24.0")).worker(Shape(pp=2))
    seen = set()
    for each in told.reserve:
        roles = {role.kind: role for role in each.candidate.roles}
        assert all(role.shape == Shape(pp=2) for role in roles.values())
        assert all(role.engine.max_num_seqs % 2 == 0 for role in roles.values())
        assert each.evaluation.used_gpus == 2 * sum(role.workers for role in roles.values())
        seen.add(each.candidate.topology)
        for role in roles.values():
            assert role.engine.max_num_seqs * 3000 <= each.evaluation.memory[role.kind].kv_tokens
        if each.candidate.topology == "agg":
            continue
        decoding = roles["decode"].engine.max_num_seqs
        (prefill_ms,) = worker.prefill_ms([1], 3000)
        (decode_ms,) = worker.decode_total_ms([decoding // 2], 3000, 300)
        p = 0.9 * 1000 * roles["prefill"].engine.max_num_seqs / (1.1 * prefill_ms) * roles["prefill"].workers
        d = 0.92 * 1000 * decoding / (1.08 * decode_ms) * roles["decode"].workers
        assert each.evaluation.metrics["requestThroughputPerS"] == pytest.approx(min(p, d))
        assert each.evaluation.metrics["tpotMs"] == pytest.approx(1.08 * decode_ms / 299)
    assert seen == {"agg", "disagg"}


def test_context_parallel_prefill_is_timed_and_takes_no_place_of_what_renders(catalog: Catalog) -> None:
    spec = asked({"cp": 4}, {"tp": 4}, backend="sglang", model="Qwen/Qwen3-32B", objective={"metric": "ttft"})
    told = search(spec, catalog)
    assert {each.reason for each in told.resolved.coverage} == {"Supported"}
    shapes = [{role.shape.label for role in each.candidate.roles} for each in told.reserve]
    assert any("cp4" in labels for labels in shapes)
    assert any("cp4" not in labels for labels in shapes)


def test_memory_of_a_context_parallel_worker_counts_its_own_weights(catalog: Catalog) -> None:
    """The estimate knows no cp: its weights must be those of the operators of the worker's own model."""
    identity = PerfIdentity(MOE, "h200_sxm", "sglang", "0.5.16")
    shape = Shape(cp=4, moe_ep=4)
    own = catalog.performance(identity).worker(shape)
    weights = sum(op.get_weights() for op in own._model.context_ops) / 2**30
    assert catalog.kv(identity, shape, 8192).weights_gib == pytest.approx(weights, rel=1e-6)


degrees = st.sampled_from([1, 1, 2, 4, 8])


@st.composite
def configs(draw: st.DrawFn) -> dict[str, int]:
    """A shape whose experts mostly fill it, or are none."""
    tp, pp, dp, cp = draw(degrees), draw(degrees), draw(degrees), draw(st.sampled_from([1, 1, 1, 2]))
    width = tp * dp * cp
    moe_tp = draw(st.sampled_from([1, 2, width, 1]))
    moe_ep = draw(st.sampled_from([1, width // moe_tp or 1, width // moe_tp or 1]))
    return {"tp": tp, "pp": pp, "attention_dp": dp, "moe_tp": moe_tp, "moe_ep": moe_ep, "cp": cp}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    configs=st.lists(configs(), min_size=1, max_size=2),
    backend=st.sampled_from(["vllm", "sglang", "trtllm"]),
    model=st.sampled_from([MOE, "Qwen/Qwen3-32B"]),
    bounds=st.tuples(st.integers(1, 64), st.integers(1, 64)).map(sorted),
)
def test_laws_of_every_accepted_list(
    tmp_path_factory: pytest.TempPathFactory,
    configs: list[dict[str, int]],
    backend: str,
    model: str,
    bounds: list[int],
) -> None:
    least, most = bounds
    catalog = Catalog(DiskCache(tmp_path_factory.getbasetemp() / "laws"))
    spec = asked(*configs, backend=backend, model=model, hardware={"gpu": {"budget": most, "minBudget": least}})
    chains = version_chains(spec)
    try:
        check(spec, catalog)
        config = search_config(spec, {name: each.performance_data for name, each in chains.items()})
        branch = plan_branch(catalog, config, spec.backends[0], "agg", chains[spec.backends[0]], kv_gated=False)
    except (InvalidRequest, Unsupported) as refused:
        event(type(refused).__name__)
        return
    event("accepted")
    for role in branch.roles:
        everything = [*role.shapes.legal, *(out.shape for out in role.shapes.refused)]
        assert len(set(everything)) == len(everything) == len({tuple(each.items()) for each in configs})
        for shape in role.shapes.legal:
            assert shape.gpus == shape.tp * shape.pp * shape.attention_dp * shape.cp
            if model == MOE:
                assert shape.tp * shape.attention_dp * shape.cp == shape.moe_tp * shape.moe_ep
            form = RoleForm(
                backend=spec.backends[0],
                engine_version=role.chain.engine,
                kind=role.kind,
                shape=shape,
                is_moe=model == MOE,
                gpus_per_node=8,
            )
            assert shape_problems(form) == []
            counts = [count for count in range(1, 65) if least <= count * shape.gpus <= most]
            assert branch.pairs_of((shape,)) == len(counts)
