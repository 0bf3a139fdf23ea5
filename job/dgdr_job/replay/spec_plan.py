"""A ReplaySpec document as a plan in numbers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from dgdr_api.replay_spec import KvTransfer, PerformanceDataTiming, ReplayRole, ReplaySpec

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.replay.errors import InvalidReplay
from dgdr_job.replay.pass_times import FIXED, NS_PER_MS, PERFORMANCE, POLYNOMIAL, PassTimes, is_time, read_table
from dgdr_job.replay.plan import Plan, RolePlan, RouterPlan, TransferPlan
from dgdr_job.timing.passes import pass_table


def plan_of(spec: ReplaySpec, folder: Path, catalog: Catalog | None = None) -> Plan:
    """What a document asks to simulate.

    Args:
        spec: the document.
        folder: where a relative path of a table begins.
        catalog: where performance data comes from; a document may be without it.

    Raises:
        InvalidReplay: a field asks for what is not replayed; the message names it.
        InvalidTiming: a table is no table.
        Unsupported: a role's performance data is not there.
    """
    for problem in _unplayed(spec):
        raise InvalidReplay(problem)
    overhead_ns = round(spec.host_overhead_ms * NS_PER_MS)
    roles = tuple(_role(role, folder, overhead_ns, catalog) for role in spec.roles)
    return Plan(
        roles=tuple(role for role in roles if role.kind != "encode"),
        encode=next((role for role in roles if role.kind == "encode"), None),
        transfer=_transfer(spec.kv_transfer),
        router=RouterPlan(
            kv=spec.router.mode == "kv",
            overlap_credit=spec.router.overlap_credit,
            prefill_load_scale=spec.router.prefill_load_scale,
        ),
    )


def _role(role: ReplayRole, folder: Path, overhead_ns: int, catalog: Catalog | None) -> RolePlan:
    engine = role.engine
    return RolePlan(
        kind=role.kind,
        backend=role.backend,
        workers=role.workers,
        ranks=role.shape.attention_dp,
        gpus_per_worker=role.gpus_per_worker,
        max_num_seqs=engine.max_num_seqs,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        block_size=engine.block_size,
        num_blocks=engine.num_gpu_blocks,
        prefix_caching=engine.enable_prefix_caching,
        chunked_prefill=engine.enable_chunked_prefill,
        preempt_oldest=engine.preemption == "oldest",
        times=_times(role, folder, overhead_ns, catalog),
    )


def _times(role: ReplayRole, folder: Path, overhead_ns: int, catalog: Catalog | None) -> PassTimes:
    timing = role.timing
    if timing.type == "fixed":
        for name, value in (("prefillMs", timing.prefill_ms), ("decodeMs", timing.decode_ms)):
            if not is_time(value):
                raise InvalidReplay(
                    f"roles[{role.kind}].timing.{name} = {value}; expected 0 to 1000000000 milliseconds"
                )
        return PassTimes(FIXED, timing.prefill_ms, timing.decode_ms, host_overhead_ns=overhead_ns)
    if timing.type == "polynomial":
        return PassTimes(POLYNOMIAL, host_overhead_ns=overhead_ns)
    if timing.type == "table":
        return read_table(folder / timing.path, overhead_ns)
    if catalog is None:
        raise InvalidReplay(f"roles[{role.kind}].timing.type = performanceData, but no performance data is at hand")
    return _measured(role, timing, overhead_ns, catalog)


def _measured(role: ReplayRole, timing: PerformanceDataTiming, overhead_ns: int, catalog: Catalog) -> PassTimes:
    """Times from performance data, of exactly the formats that the document names."""
    identity = PerfIdentity(timing.model, timing.sku, timing.backend, timing.version)
    formats, asked = catalog.quantization(identity), timing.quantization.model_dump()
    for name, value in asked.items():
        if getattr(formats, name) != value:
            raise InvalidReplay(
                f"roles[{role.kind}].timing.quantization.{name} = {value}; the data of {identity.label} is for "
                f"{getattr(formats, name)}"
            )
    engine = role.engine
    table = pass_table(
        catalog,
        identity,
        timing.shape,
        batch=engine.max_num_seqs,
        tokens=engine.max_num_batched_tokens + engine.max_num_seqs,
        length=engine.max_sequence_length,
    )
    return PassTimes(
        PERFORMANCE,
        prefill_tokens=np.arange(1.0, len(table.other_ms) + 1),
        prefill_table_ms=table.other_ms,
        decode_batch=np.arange(1.0, len(table.step_ms) + 1),
        decode_context=table.context,
        decode_table_ms=table.step_ms,
        prompt_counts=table.prompts,
        new_tokens=table.new_tokens,
        cached_tokens=table.cached_tokens,
        prompt_table_ms=table.prompt_ms,
        attention_table_ms=table.attention_ms,
        host_overhead_ns=overhead_ns,
    )


def _unplayed(spec: ReplaySpec) -> Iterator[str]:
    """What the document asks for and no replay has."""
    if spec.planner is not None:
        yield "planner: scaling while the replay runs is not supported; leave planner out"
    if spec.router.prefill_load_model.type != "none":
        yield f"router.prefillLoadModel.type = {spec.router.prefill_load_model.type} is not replayed; use none"
    static = spec.workload.static
    inline_images = static is not None and static.images is not None and spec.encoder == "Inline"
    for role in spec.roles:
        where, timing = f"roles[{role.kind}]", role.timing
        if role.nextn:
            yield f"{where}.nextn = {role.nextn}: draft tokens are not replayed; use 0"
        if timing.type != "performanceData":
            continue
        if role.kind == "encode" or (inline_images and role.kind != "decode"):
            yield f"{where}.timing.type = performanceData: encoding images is not replayed; use fixed or table"
        for name, mine in (("sku", role.sku), ("backend", role.backend), ("version", role.data_version)):
            if getattr(timing, name) != mine:
                yield f"{where}.timing.{name} = {getattr(timing, name)}, but the role has {mine}"
        if timing.shape != role.shape:
            yield f"{where}.timing.shape is {timing.shape.label}, but the role has {role.shape.label}"


def _transfer(transfer: KvTransfer) -> TransferPlan:
    per_token = 0.0
    if transfer.bandwidth_gb_per_s is not None and transfer.bytes_per_token is not None:
        per_token = transfer.bytes_per_token / (transfer.bandwidth_gb_per_s * 1e9) * 1000.0
    return TransferPlan(
        ms_per_token=per_token,
        latency_ms=transfer.latency_ms,
        only_missing=transfer.mode == "destinationMissing",
        contention=transfer.contention,
    )
