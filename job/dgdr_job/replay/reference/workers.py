"""A worker: its data-parallel ranks run their passes together, and the slowest one ends them."""

from dataclasses import dataclass, field

from dgdr_job.replay.plan import RolePlan
from dgdr_job.replay.reference.paged import PagedScheduler
from dgdr_job.replay.reference.sequence import Pass, Sequence
from dgdr_job.replay.reference.sglang import SglangScheduler

Scheduler = PagedScheduler | SglangScheduler


@dataclass(eq=False)
class Rank:
    """One rank, and what the router knows of it."""

    scheduler: Scheduler
    visible: set[int] = field(default_factory=set)
    """Keys of the blocks that are known to be cached here."""
    prefill_load: dict[int, int] = field(default_factory=dict)
    """New prompt tokens of the requests that have no first token yet."""
    prompt_blocks: dict[int, list[int]] = field(default_factory=dict)
    """Keys of the full prompt blocks of the requests that run or wait here."""

    def publish(self) -> None:
        """Let the router see what the cache holds now."""
        cache = self.scheduler.pool if isinstance(self.scheduler, PagedScheduler) else self.scheduler.cache
        for key, there in cache.changes:
            (self.visible.add if there else self.visible.discard)(key)
        cache.changes.clear()


class Worker:
    """One worker of a role."""

    def __init__(self, role: RolePlan) -> None:
        self.role = role
        kind = SglangScheduler if role.backend == "sglang" else PagedScheduler
        self.ranks = [Rank(kind(role)) for _ in range(role.ranks)]
        self.busy = False
        self.passes: list[Pass] = []
        self.deferred: list[tuple[str, int]] = []
        """Steps of handoffs that wait for the end of the pass."""
        self.link_free_ns = 0
        """When the last transfer that leaves here is through."""

    def start_pass(self) -> int | None:
        """Run the next pass of every rank. Returns its nanoseconds; None when there is nothing to do."""
        if self.busy or not any(rank.scheduler.has_work for rank in self.ranks):
            return None
        passes = [rank.scheduler.run_pass() for rank in self.ranks]
        if not any(one.did_something for one in passes):
            return None
        self.passes = passes
        self.busy = True
        return max(self._duration_ns(one) for one in passes) + self.role.times.host_overhead_ns

    def _duration_ns(self, done: Pass) -> int:
        prompts = done.prompts if self.role.kind != "decode" else []
        return self.role.times.pass_ns(prompts, done.decode_batch, done.decode_context, self.role.capacity_tokens)


@dataclass
class Handoff:
    """The way of one request from its prefill worker to its decode worker."""

    source: tuple[Worker, Rank] | None = None
    source_sequence: Sequence | None = None
    target: tuple[Worker, Rank] | None = None
    target_sequence: Sequence | None = None
    held: bool = False
    """Whether the prompt is computed and its KV held at the source."""
    reserved: bool = False
    """Whether there is room at the target."""
