"""Which worker, and which of its ranks, a request goes to."""

from dgdr_job.replay.plan import RolePlan, RouterPlan
from dgdr_job.replay.reference.workers import Rank, Worker
from dgdr_job.replay.requests import BlockKeys


class Router:
    """The router of one pool of workers."""

    def __init__(self, plan: RouterPlan, role: RolePlan, workers: list[Worker], keys: BlockKeys) -> None:
        self.plan = plan
        self.role = role
        self.keys = keys
        self.places = [(worker, rank) for worker in workers for rank in worker.ranks]
        self._workers = workers
        self._turn = 0
        self._rank_turns = [0] * len(workers)

    def choose(self, request: int, isl: int) -> tuple[Worker, Rank]:
        """The place of the next request."""
        if self.plan.kv:
            return self._cheapest(request, isl)
        if self.role.kind != "agg":
            place = self.places[self._turn % len(self.places)]
            self._turn += 1
            return place
        at = self._turn % len(self._workers)
        self._turn += 1
        worker = self._workers[at]
        rank = worker.ranks[self._rank_turns[at] % len(worker.ranks)]
        self._rank_turns[at] += 1
        return worker, rank

    def _cheapest(self, request: int, isl: int) -> tuple[Worker, Rank]:
        """The place with the least cost, the first of several.

        cost = prefill_load_scale * max(0, (waiting prompt tokens + new ones) / block - overlap_credit * cached blocks)
        + distinct prompt blocks in use. The prefill pool leaves the last term out, the decode pool the overlap.
        """
        block = self.role.block_size
        keys = self.keys.of(request, 0, isl // block)
        best: tuple[float, Worker, Rank, int] | None = None
        for worker, rank in self.places:
            cached = 0 if self.role.kind == "decode" else _overlap(rank.visible, keys)
            new = isl - cached * block
            waiting = 0 if self.role.kind == "decode" else sum(rank.prefill_load.values()) + new
            load = max(0.0, waiting / block - self.plan.overlap_credit * cached)
            cost = self.plan.prefill_load_scale * load
            if self.role.kind != "prefill":
                cost += len({key for blocks in rank.prompt_blocks.values() for key in blocks} | set(keys))
            if best is None or cost < best[0]:
                best = (cost, worker, rank, new)
        assert best is not None
        _, worker, rank, new = best
        rank.prefill_load[request] = new
        rank.prompt_blocks[request] = keys
        return worker, rank

    def first_token(self, rank: Rank, request: int) -> None:
        """The prompt of a request is computed."""
        rank.prefill_load.pop(request, None)

    def done(self, rank: Rank, request: int) -> None:
        """A request has left this pool."""
        rank.prefill_load.pop(request, None)
        rank.prompt_blocks.pop(request, None)


def _overlap(visible: set[int], keys: list[int]) -> int:
    count = 0
    for key in keys:
        if key not in visible:
            break
        count += 1
    return count
