"""The rows of one shape of a role: every batch, and token budget, that its KV cache holds.

Source of rates and corrections: engine.md section 6. A row is a deployment: its batch becomes the limit of running
sequences, its token budget that of a pass, so both are gated by the KV cache at the row's own budget (section 4).

With pipeline stages a pass has one batch in each stage: a row is timed by the batch of a pass, and its deployment runs
as many of them at once as there are stages.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from dgdr_api.expressible import decode_tokens_in_budget, knob_problems, least_token_budget
from dgdr_api.shape import Shape
from dgdr_api.terms import ReasonCategory, RoleKind

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.images import Images
from dgdr_job.catalog.kv import KvEstimate
from dgdr_job.catalog.provenance import SourceShares
from dgdr_job.matching.arrays import TIE, Floats, Ints
from dgdr_job.search.config import Encode, RateMatching, Workload
from dgdr_job.search.inline_encoder import InlineEncoder
from dgdr_job.space.gate import has_room
from dgdr_job.space.knobs import RoleKnobs
from dgdr_job.timing.batches import BATCH_GRID, max_batch
from dgdr_job.timing.corrections import agg_waiting_ms, correct_decode, correct_prefill
from dgdr_job.timing.plausibility import EncoderPlausibility, Plausibility
from dgdr_job.timing.rows import agg_rows, decode_rows, is_steady, prefill_rows

DEFAULT_ENCODE = Encode()


@dataclass(frozen=True)
class RoleInput:
    """What a role's rows are computed from."""

    kind: RoleKind
    identity: PerfIdentity
    shapes: tuple[Shape, ...]
    """Shapes that passed the KV gate."""
    knobs: RoleKnobs
    max_sequence_tokens: int
    """Bound of the KV gate."""
    images: Images | None = None
    """Images of a request that the role encodes."""
    encode: Encode = DEFAULT_ENCODE
    """How encode workers are searched; of role encode."""
    ttft_factor: float = 1.0
    """What a pass of an encode worker counts in the TTFT; of role encode."""


@dataclass(frozen=True)
class ShapeData:
    """What is known of one shape of a role besides its rows."""

    shape: Shape
    shares: SourceShares
    plausibility: Plausibility | None
    """Judgement of a decode step; None for an encode worker."""
    encoder: EncoderPlausibility | None = None
    """Judgement of the vision encoder's pass, where there is one."""


@dataclass(frozen=True)
class Rows:
    """Columns of one shape; their meaning is that of `role_table.RoleTable`."""

    batch: Ints
    batched_tokens: Ints
    rate: Floats
    ttft_ms: Floats
    tpot_ms: Floats
    estimates: tuple[KvEstimate, ...]
    """KV estimate of each row."""


class NoRow(Exception):  # noqa: N818 - a verdict on one shape, not a fault
    """A shape has no operating point: the reason category, and the numbers."""

    def __init__(self, reason: ReasonCategory, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


RowsOf = Callable[[Catalog, RoleInput, Shape, Workload, RateMatching], tuple[ShapeData, Rows]]


def prefill(
    catalog: Catalog, role: RoleInput, shape: Shape, workload: Workload, constants: RateMatching
) -> tuple[ShapeData, Rows]:
    """Rows of a prefill worker: the token budget is the least listed value that covers the batch's prompts.

    Raises:
        NoRow: no listed budget covers a prompt, or none that does leaves room for the longest request.
        Unsupported: the shape has no data.
    """
    kept: list[tuple[int, int, KvEstimate]] = []
    reason: ReasonCategory = "resource_limit"
    detail = ""
    prompts = sorted(set(constants.prefill_batches))
    encoder = InlineEncoder(catalog, role.identity, shape, role.images, prompts)
    for batch in prompts:
        budget = role.knobs.batched_tokens_for(batch * workload.prompt_tokens)
        running = batch * shape.pp
        if budget is None or running > role.knobs.max_num_seqs[-1]:
            detail = detail or _not_listed(shape, running, budget, role, workload)
            continue
        problems = _inexpressible(role, shape, running, budget)
        if problems:
            reason, detail = "backend_topology", problems[0]
            continue
        estimate = encoder.beside(catalog.kv(role.identity, shape, budget, role.knobs.memory_fraction[0]), batch)
        if _holds_longest(estimate, role) and running * workload.prompt_tokens <= estimate.tokens_per_rank:
            kept.append((batch, budget, estimate))
        else:
            reason, detail = "kv_capacity", _no_room(shape, budget, estimate, role, workload)
    if not kept:
        raise NoRow(reason, detail)
    batches = [batch for batch, _, _ in kept]
    rows = prefill_rows(catalog, role.identity, shape, isl=workload.prompt_tokens, batches=batches)
    rates = correct_prefill(
        rows.batch,
        rows.latency_ms,
        ranks=shape.attention_dp * shape.pp,
        encoder_ms=encoder.latency_ms(batches),
        corrections=constants.corrections,
    )
    return ShapeData(shape, rows.shares, rows.plausibility, encoder.plausibility), Rows(
        batch=rows.batch * shape.pp,
        batched_tokens=np.array([budget for _, budget, _ in kept], dtype=np.int64),
        rate=rates.requests_per_s * constants.prefill_rate,
        ttft_ms=rates.ttft_ms,
        tpot_ms=np.zeros(len(kept)),
        estimates=tuple(estimate for _, _, estimate in kept),
    )


def decode(
    catalog: Catalog, role: RoleInput, shape: Shape, workload: Workload, constants: RateMatching
) -> tuple[ShapeData, Rows]:
    """Rows of a decode worker: the token budget is the least listed value that covers a token of each sequence.

    Raises:
        NoRow: the KV cache does not hold one request, or the backend cannot be given the limits.
        Unsupported: the shape has no data.
    """
    kept: list[tuple[int, int, KvEstimate]] = []
    least = role.knobs.max_num_batched_tokens[0]
    for batch in BATCH_GRID:
        budget = role.knobs.batched_tokens_for(batch * shape.pp)
        if budget is None:
            break
        estimate = catalog.kv(role.identity, shape, budget, role.knobs.memory_fraction[0])
        running = batch * shape.pp
        if running <= min(role.knobs.max_num_seqs[-1], budget, _held(estimate, role, workload)):
            kept.append((batch, budget, estimate))
    if not kept:
        estimate = catalog.kv(role.identity, shape, least, role.knobs.memory_fraction[0])
        raise NoRow("kv_capacity", _no_room(shape, least, estimate, role, workload))
    expressible = [each for each in kept if not _inexpressible(role, shape, each[0] * shape.pp, each[1])]
    if not expressible:
        raise NoRow("backend_topology", _inexpressible(role, shape, kept[0][0] * shape.pp, kept[0][1])[0])
    batches = [batch for batch, _, _ in expressible]
    rows = decode_rows(catalog, role.identity, shape, isl=workload.prompt_tokens, osl=workload.osl, batches=batches)
    rates = correct_decode(
        rows.batch,
        rows.decode_total_ms,
        osl=workload.osl,
        ranks=shape.attention_dp * shape.pp,
        corrections=constants.corrections,
    )
    return ShapeData(shape, rows.shares, rows.plausibility), Rows(
        batch=rows.batch * shape.pp,
        batched_tokens=np.array([budget for _, budget, _ in expressible], dtype=np.int64),
        rate=rates.requests_per_s * constants.decode_rate,
        ttft_ms=np.zeros(len(batches)),
        tpot_ms=rates.tpot_ms,
        estimates=tuple(estimate for _, _, estimate in expressible),
    )


def aggregated(
    catalog: Catalog, role: RoleInput, shape: Shape, workload: Workload, constants: RateMatching
) -> tuple[ShapeData, Rows]:
    """Rows of a worker that does both, at every batch and token budget.

    Raises:
        NoRow: the KV cache holds no request, or no batch has enough requests for a pass of any budget.
        Unsupported: the shape has no data.
    """
    del constants
    encoder = InlineEncoder(catalog, role.identity, shape, role.images, BATCH_GRID)
    passes = list(_passes(catalog, role, shape, workload, encoder))
    if not passes:
        budget = role.knobs.least_token_budget
        estimate = encoder.beside(catalog.kv(role.identity, shape, budget, role.knobs.memory_fraction[0]), 1)
        raise NoRow("kv_capacity", _no_room(shape, budget, estimate, role, workload))
    steady = {
        (each.batch, each.budget): each
        for each in passes
        if is_steady(workload.prompt_tokens, each.batch, each.ctx_tokens)
        and not _inexpressible(role, shape, each.batch * shape.pp, each.budget)
    }
    if not steady:
        budgets = _listed(tuple(sorted({each.budget for each in passes})))
        raise NoRow(
            "resource_limit",
            f"{shape.label}: no batch up to {max(each.batch for each in passes)} has the prompts of "
            f"{workload.prompt_tokens:,} tokens for a pass of {budgets} tokens",
        )
    kept = sorted(steady.values(), key=lambda each: (each.batch, each.budget))
    points = sorted({(each.batch, each.ctx_tokens) for each in kept})
    rows = agg_rows(
        catalog,
        role.identity,
        shape,
        isl=workload.prompt_tokens,
        osl=workload.osl,
        points=points,
        images=role.images,
    )
    place = {point: index for index, point in enumerate(points)}
    at = np.array([place[each.batch, each.ctx_tokens] for each in kept], dtype=np.int64)
    ttft, tpot = rows.ttft_ms[at], rows.tpot_ms[at]
    slots = rows.batch[at] * shape.attention_dp * shape.pp
    rate = within_slots(rows.requests_per_s[at], slots, ttft + tpot * (workload.osl - 1))
    return ShapeData(shape, rows.shares, rows.plausibility, encoder.plausibility), Rows(
        batch=rows.batch[at] * shape.pp,
        batched_tokens=np.array([each.budget for each in kept], dtype=np.int64),
        rate=rate,
        ttft_ms=ttft + agg_waiting_ms(slots, rate, ttft, tpot, osl=workload.osl),
        tpot_ms=tpot,
        estimates=tuple(each.estimate for each in kept),
    )


@dataclass(frozen=True)
class _Pass:
    """A mixed pass: what is rendered (batch and budget) is what is estimated (batch and prompt tokens)."""

    batch: int
    ctx_tokens: int
    budget: int
    estimate: KvEstimate


def _passes(
    catalog: Catalog, role: RoleInput, shape: Shape, workload: Workload, encoder: InlineEncoder
) -> Iterator[_Pass]:
    """Every batch with every listed budget, and with the budget that holds each of the listed prompt tokens."""
    backend = role.identity.backend
    for budget in role.knobs.max_num_batched_tokens:
        estimate = catalog.kv(role.identity, shape, budget, role.knobs.memory_fraction[0])
        for batch, left in _batches(budget, estimate, role, workload, stages=shape.pp, encoder=encoder).items():
            yield _Pass(batch, budget - decode_tokens_in_budget(backend, batch), budget, left)
    for ctx_tokens in role.knobs.ctx_tokens:
        decoding = decode_tokens_in_budget(backend, BATCH_GRID[-1])
        widest = least_token_budget(backend, ctx_tokens + decoding, role.knobs.block_size[0])
        estimate = catalog.kv(role.identity, shape, widest, role.knobs.memory_fraction[0])
        for batch, left in _batches(widest, estimate, role, workload, stages=shape.pp, encoder=encoder).items():
            decoding = decode_tokens_in_budget(backend, batch)
            budget = least_token_budget(backend, ctx_tokens + decoding, role.knobs.block_size[0])
            yield _Pass(batch, budget - decoding, budget, left)


def within_slots(rate: Floats, slots: Ints, e2e_ms: Floats) -> Floats:
    """Rates cut to what Little's law allows: requests in flight, rate times latency, never exceed the slots.

    The core's aggregated estimate breaks it where a lone request is prefilled in small passes (osl 1).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = 1000.0 * slots / e2e_ms
    return np.where(rate > bound * (1 + TIE), bound, rate)


def _batches(
    budget: int,
    estimate: KvEstimate,
    role: RoleInput,
    workload: Workload,
    *,
    stages: int,
    encoder: InlineEncoder | None = None,
) -> dict[int, KvEstimate]:
    """Batches of the grid that the KV cache holds at their full length, the listed sequences and the budget allow.

    As many of them run at once as there are pipeline stages. An engine refuses a token budget below its number of
    sequences. Each comes with what an encoder that holds its images leaves of the KV cache.
    """
    most = min(role.knobs.max_num_seqs[-1], budget)
    found: dict[int, KvEstimate] = {}
    left, held = estimate, _held(estimate, role, workload)
    for batch in BATCH_GRID:
        if batch * stages > most:
            break
        beside = left if encoder is None else encoder.beside(estimate, batch)
        if beside is not left:
            left, held = beside, _held(beside, role, workload)
        if batch * stages <= held:
            found[batch] = left
    return found


def _fits(running: int, budget: int, left: KvEstimate, role: RoleInput, workload: Workload) -> bool:
    """Whether so many requests of full length can run in this KV cache, the listed sequences and the budget."""
    return running <= min(role.knobs.max_num_seqs[-1], budget, _held(left, role, workload))


def _held(left: KvEstimate, role: RoleInput, workload: Workload) -> int:
    """Requests of full length that this KV cache holds, 0 where it does not hold the longest one."""
    if not _holds_longest(left, role):
        return 0
    return max_batch(left.tokens_per_rank, workload.prompt_tokens + workload.osl)


def _holds_longest(estimate: KvEstimate, role: RoleInput) -> bool:
    """Whether the KV cache passes the gate, and holds the longest request in whole blocks: else no engine starts."""
    block, longest = role.knobs.block_size[0], role.max_sequence_tokens
    return has_room(estimate.tokens_per_rank, longest) and estimate.tokens_per_rank // block >= -(-longest // block)


def _inexpressible(role: RoleInput, shape: Shape, batch: int, budget: int) -> list[str]:
    """Why the backend cannot be given these limits; rows with such limits are not made."""
    return knob_problems(
        role.identity.backend,
        max_num_batched_tokens=budget,
        block_size=role.knobs.block_size[0],
        max_num_seqs=batch,
        shape=shape,
    )


def _no_room(shape: Shape, budget: int, estimate: KvEstimate, role: RoleInput, workload: Workload) -> str:
    block = role.knobs.block_size[0]
    blocks = f" (blocks of {block:,})" if block > 1 else ""
    return (
        f"{shape.label}: {estimate.tokens_per_rank:,} KV tokens per rank{blocks} at a token budget of {budget:,} do "
        f"not hold the longest request of {role.max_sequence_tokens:,} tokens beside prompts of "
        f"{workload.prompt_tokens:,}"
    )


def _not_listed(shape: Shape, batch: int, budget: int | None, role: RoleInput, workload: Workload) -> str:
    """Why no listed limit lets a prefill pass have so many prompts."""
    if budget is not None:
        return f"{shape.label}: no listed limit of sequences ({_listed(role.knobs.max_num_seqs)}) allows {batch:,}"
    prompts = "a prompt" if batch == 1 else f"{batch:,} prompts"
    return (
        f"{shape.label}: no listed token budget ({_listed(role.knobs.max_num_batched_tokens)}) "
        f"covers {prompts} of {workload.prompt_tokens:,} tokens"
    )


def _listed(values: tuple[int, ...]) -> str:
    return ", ".join(f"{value:,}" for value in values)
