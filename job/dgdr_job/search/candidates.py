"""From a point to the candidate that is deployed and the ReplaySpec that was scored: both from the same rows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from dgdr_api.candidate import Candidate, EvaluatedCandidate, Evaluation, RoleMemory
from dgdr_api.canonical import sha256_hex
from dgdr_api.defaults import default_requests, default_warmup
from dgdr_api.replay_spec import (
    EncoderSplit,
    Engine,
    PerformanceDataTiming,
    Quantization,
    ReplayImages,
    ReplayRole,
    ReplaySla,
    ReplaySpec,
    ReplayStaticWorkload,
    ReplayWorkload,
)
from dgdr_api.run import RunSpec
from dgdr_api.terms import Metric

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.wheel import wheel_version
from dgdr_job.matching.arrays import Floats, Ints
from dgdr_job.search.branches import Branch, RolePlan
from dgdr_job.search.config import SmartSearchConfig, Workload
from dgdr_job.search.mapper import generated_load
from dgdr_job.search.points import Points
from dgdr_job.search.preflight import mean_shares, quantization_note
from dgdr_job.search.refused import RefusedRow
from dgdr_job.search.role_rows import ShapeData
from dgdr_job.search.role_table import RoleTable

ENCODER_FORMATS = Quantization(
    gemm="bfloat16", moe="bfloat16", kv="bfloat16", attention="bfloat16", communication="half"
)
"""The formats of a vision encoder, whatever those of the language model."""


@dataclass(frozen=True)
class BranchResult:
    """What one branch found. ``columns`` and ``objectives`` have one entry per point."""

    branch: Branch
    tables: tuple[RoleTable, ...]
    """Rows of each role, in the order of the branch's roles."""
    points: Points
    columns: dict[str, Floats]
    objectives: dict[Metric, Floats]
    refused: tuple[RefusedRow, ...] = ()
    """Deployments that are not feasible."""
    kv_load_ratio: float | None = None
    """The KV load ratio of the round."""

    @property
    def name(self) -> str:
        """The branch, with the KV load ratio of the round."""
        return self.branch.name if self.kv_load_ratio is None else f"{self.branch.name}/kv{self.kv_load_ratio:g}"

    @property
    def shape_ids(self) -> list[Ints]:
        """Index of the shape of each role in its table, per point."""
        return [table.shape[self.points.row_of(table.kind)] for table in self.tables]

    def take(self, rows: Ints) -> "BranchResult":
        """The result with the points at these positions only."""
        return replace(
            self,
            points=self.points.take(rows),
            columns={name: values[rows] for name, values in self.columns.items()},
            objectives={name: values[rows] for name, values in self.objectives.items()},
        )

    def roles_of(self, point: int) -> list[tuple[RolePlan, RoleTable, int, int]]:
        """(plan, table, row, workers) of each role of a point."""
        rows = [int(self.points.row_of(table.kind)[point]) for table in self.tables]
        workers = [int(self.points.workers_of(table.kind)[point]) for table in self.tables]
        return list(zip(self.branch.roles, self.tables, rows, workers, strict=True))

    def summary(self, point: int) -> str:
        """The deployment in one line, e.g. ``11 x prefill tp1 b1, 2 x decode tp2 b216``."""
        mixed = len({plan.identity.sku for plan in self.branch.roles}) > 1
        ratio = self.kv_load_ratio
        load = "" if ratio is None else f", {self.points.concurrency[point]:,} in flight (KV load {ratio:.4g})"
        roles = ", ".join(
            f"{workers} x {plan.kind} {table.shapes[table.shape[row]].shape.label} b{table.batch[row]}"
            f"{f' on {plan.identity.sku}' if mixed else ''}"
            for plan, table, row, workers in self.roles_of(point)
        )
        return roles + load

    def point_id(self, point: int) -> str:
        """16 hex digits that name the point: branch, KV load ratio, and of each role workers, shape, batch, budget."""
        ratio = [] if self.kv_load_ratio is None else [self.kv_load_ratio]
        return sha256_hex([self.branch.name, *ratio, *self._identity(point)], 16)

    def _identity(self, point: int) -> list[list[Any]]:
        return [
            [
                plan.kind,
                workers,
                list(table.shapes[table.shape[row]].shape.key),
                int(table.batch[row]),
                int(table.batched_tokens[row]),
            ]
            for plan, table, row, workers in self.roles_of(point)
        ]


def evaluated_candidate(
    catalog: Catalog, run: RunSpec, config: SmartSearchConfig, result: BranchResult, point: int, *, score: float
) -> EvaluatedCandidate:
    """Build the candidate of a point, with the ReplaySpec that its numbers belong to."""
    roles = tuple(_role(catalog, config, result.branch, chosen) for chosen in result.roles_of(point))
    sla = config.goal.sla
    workload = _workload(run, int(result.points.concurrency[point]) or None, config.workload)
    spec = ReplaySpec(
        topology=result.branch.topology,
        encoder=result.branch.encoder,
        seed=config.sweep.seed,
        roles=roles,
        router=run.search.router[0],
        workload=ReplayWorkload(static=workload),
        sla=ReplaySla(ttft_ms=sla.ttft_ms, itl_ms=sla.itl_ms, e2e_ms=sla.e2e_ms),
    )
    return EvaluatedCandidate(
        id=result.point_id(point),
        candidate=Candidate.of_replay_spec(
            spec, model=run.model_ref.name, parameters=_parameters(config, workload, result.kv_load_ratio)
        ),
        replay_spec=spec,
        evaluation=_evaluation(catalog, config, result, point, score=score),
    )


def _role(
    catalog: Catalog,
    config: SmartSearchConfig,
    branch: Branch,
    chosen: tuple[RolePlan, RoleTable, int, int],
) -> ReplayRole:
    plan, table, row, workers = chosen
    shape = table.shapes[table.shape[row]].shape
    quantization = ENCODER_FORMATS if plan.kind == "encode" else _formats(catalog, plan)
    return ReplayRole(
        kind=plan.kind,
        workers=workers,
        gpus_per_worker=shape.gpus,
        backend=branch.backend,
        sku=plan.identity.sku,
        engine_version=plan.chain.engine,
        data_version=plan.chain.performance_data,
        shape=shape,
        quantization=quantization,
        memory_fraction=float(table.memory_fraction[row]),
        encoder_split=_encoder_split(plan),
        engine=_engine(config, branch, plan, table, row),
        timing=PerformanceDataTiming(
            model=plan.identity.model,
            config_sha256=catalog.local_digest(plan.identity.model),
            sku=plan.identity.sku,
            backend=branch.backend,
            version=plan.chain.performance_data,
            shape=shape,
            quantization=quantization,
        ),
    )


def _engine(config: SmartSearchConfig, branch: Branch, plan: RolePlan, table: RoleTable, row: int) -> Engine:
    """Limits of the engine; of an encode worker its batch, in requests and in visual tokens."""
    block, encodes = plan.knobs.block_size[0], plan.kind == "encode"
    return Engine(
        max_num_seqs=int(table.batch[row]),
        max_num_batched_tokens=int(table.batched_tokens[row]),
        block_size=block,
        num_gpu_blocks=int(table.kv_tokens[row]) // block,
        max_sequence_length=config.workload.visual_tokens if encodes else branch.max_sequence_tokens,
        enable_prefix_caching=plan.knobs.enable_prefix_caching[0],
        enable_chunked_prefill=not encodes,
    )


def _encoder_split(plan: RolePlan) -> EncoderSplit | None:
    """As the times were computed: beside a language model each GPU takes whole images, alone the weights are split."""
    if plan.images is None:
        return None
    return "tensor" if plan.kind == "encode" else "data"


def _formats(catalog: Catalog, plan: RolePlan) -> Quantization:
    formats = catalog.quantization(plan.identity)
    return Quantization(
        gemm=formats.gemm,
        moe=formats.moe,
        kv=formats.kv,
        attention=formats.attention,
        communication=formats.communication,
    )


def _workload(run: RunSpec, concurrency: int | None, resolved: Workload) -> ReplayStaticWorkload:
    """The load of one candidate: under a KV load ratio its concurrency, and what follows from it, are its own."""
    load = generated_load(run)
    requests, warmup = load.requests, load.warmup_requests
    if load.concurrency is None and concurrency is not None:
        own = load.model_copy(update={"concurrency": concurrency})
        requests = requests or default_requests(own)
        if warmup is None and requests is not None:
            warmup = default_warmup(own, requests)
    return ReplayStaticWorkload(
        isl=load.isl,
        osl=load.osl,
        concurrency=concurrency,
        request_rate=load.request_rate,
        saturated=load.saturated,
        arrival=load.arrival,
        requests=requests,
        warmup_requests=warmup or 0,
        length_spread=load.length_spread,
        shared_prefix_ratio=load.shared_prefix_ratio,
        prefix_groups=load.prefix_groups,
        turns_per_session=load.turns_per_session,
        inter_turn_delay_ms=load.inter_turn_delay_ms,
        turn_history=load.turn_history,
        images=None
        if resolved.images is None
        else ReplayImages(**resolved.images.model_dump(), visual_tokens=resolved.visual_tokens),
    )


def _parameters(config: SmartSearchConfig, workload: ReplayStaticWorkload, ratio: float | None) -> dict[str, Any]:
    """The resolved evaluation inputs that are no field of a deployment."""
    return {
        **({} if ratio is None else {"kvLoadRatio": ratio}),
        "fidelity": config.sweep.fidelity,
        "performanceModel": f"aiconfigurator-core {wheel_version()}",
        "rateMatching": config.rate_matching.model_dump(mode="json"),
        "seed": config.sweep.seed,
        "workload": workload.model_dump(mode="json", exclude_none=True),
    }


def _evaluation(
    catalog: Catalog, config: SmartSearchConfig, result: BranchResult, point: int, *, score: float
) -> Evaluation:
    roles = result.roles_of(point)
    decode_ms = float(result.points.tpot_ms[point]) * max(config.workload.osl - 1, 1)
    ttft_ms = float(result.points.ttft_ms[point])
    encode_ms = sum(float(table.ttft_ms[row]) for plan, table, row, _ in roles if plan.kind == "encode")
    weight = {
        "prefill": ttft_ms - encode_ms,
        "decode": decode_ms,
        "agg": ttft_ms - encode_ms + decode_ms,
        "encode": encode_ms,
    }
    data = [(plan, table.shapes[table.shape[row]]) for plan, table, row, _ in roles]
    flags = [flag for plan, known in data for flag in _implausible(plan, known)]
    spanning = [
        f"{plan.kind} {known.shape.label} on nodes of {per_node} GPUs"
        for plan, known in data
        if known.shape.gpus > (per_node := config.search_space.gpus_per_node_of(plan.kind))
    ]
    for identity in dict.fromkeys(plan.identity for plan in result.branch.roles if plan.kind != "encode"):
        formats = catalog.quantization(identity)
        flags += [quantization_note(formats, field, declared) for field, declared in formats.inferred]
    return Evaluation(
        score=score,
        used_gpus=int(result.points.gpus[point]),
        objectives={name: float(values[point]) for name, values in result.objectives.items()},
        metrics={name: float(values[point]) for name, values in result.columns.items()},
        memory={
            plan.kind: RoleMemory(weights_gib=float(table.weights_gib[row]), kv_tokens=int(table.kv_tokens[row]))
            for plan, table, row, _ in roles
        },
        provenance=mean_shares([known.shares for _, known in data], [weight[plan.kind] for plan, _ in data]),
        flags=tuple(dict.fromkeys(flags)),
        not_modelled={"multinode_interconnect": ", ".join(spanning)} if spanning else {},
    )


def _implausible(plan: RolePlan, known: ShapeData) -> Iterator[str]:
    if known.plausibility is not None and known.plausibility.is_implausible:
        yield f"implausible: {plan.kind} decode step"
    if known.encoder is not None and known.encoder.is_implausible:
        yield f"implausible: {plan.kind} encoder pass"
