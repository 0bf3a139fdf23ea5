"""A ReplaySpec document as a plan in numbers."""

from pathlib import Path

from dgdr_api.replay_spec import KvTransfer, ReplayRole, ReplaySpec

from dgdr_job.replay.errors import InvalidReplay
from dgdr_job.replay.pass_times import FIXED, NS_PER_MS, POLYNOMIAL, PassTimes, is_time, read_table
from dgdr_job.replay.plan import Plan, RolePlan, RouterPlan, TransferPlan


def plan_of(spec: ReplaySpec, folder: Path) -> Plan:
    """What a document asks to simulate.

    Args:
        spec: the document.
        folder: where a relative path of a table begins.

    Raises:
        InvalidReplay: a field asks for what is not replayed; the message names it.
        InvalidTiming: a table is no table.
    """
    if spec.planner is not None:
        raise InvalidReplay("planner: scaling while the replay runs is not supported; leave planner out")
    if spec.router.prefill_load_model.type != "none":
        raise InvalidReplay(
            f"router.prefillLoadModel.type = {spec.router.prefill_load_model.type} is not replayed; use none"
        )
    overhead_ns = round(spec.host_overhead_ms * NS_PER_MS)
    roles = tuple(_role(role, folder, overhead_ns) for role in spec.roles)
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


def _role(role: ReplayRole, folder: Path, overhead_ns: int) -> RolePlan:
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
        times=_times(role, folder, overhead_ns),
    )


def _times(role: ReplayRole, folder: Path, overhead_ns: int) -> PassTimes:
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
    raise InvalidReplay(
        f"roles[{role.kind}].timing.type = {timing.type} is not replayed yet; use fixed, polynomial or table"
    )


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
