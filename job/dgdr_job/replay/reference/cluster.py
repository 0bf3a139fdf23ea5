"""The replay: events in a total order, each instant settled before the clock moves."""

import heapq
from collections import deque

from dgdr_job.replay.errors import StalledReplay
from dgdr_job.replay.outcome import COMPLETED, STATUS, Outcome
from dgdr_job.replay.plan import Plan
from dgdr_job.replay.reference.arrivals import Arrivals
from dgdr_job.replay.reference.paged import PagedScheduler
from dgdr_job.replay.reference.routing import Router
from dgdr_job.replay.reference.sequence import Pass, Sequence
from dgdr_job.replay.reference.workers import Handoff, Rank, Worker
from dgdr_job.replay.requests import BlockKeys, Requests

PASS_DONE, ENCODED, TRANSFERRED = 0, 1, 2


def replay(plan: Plan, requests: Requests) -> Outcome:
    """Replay the requests on the deployment.

    Raises:
        InvalidTiming: a pass has no time.
        StalledReplay: requests are left and nothing can move them.
    """
    return _Replay(plan, requests).run()


class _Replay:
    def __init__(self, plan: Plan, requests: Requests) -> None:
        self.plan = plan
        self.requests = requests
        self.outcome = Outcome(len(requests))
        self.arrivals = Arrivals(requests)
        self.pools = [[Worker(role) for _ in range(role.workers)] for role in plan.roles]
        self.keys = [BlockKeys(requests, role.block_size) for role in plan.roles]
        self.routers = [
            Router(plan.router, role, workers, keys)
            for role, workers, keys in zip(plan.roles, self.pools, self.keys, strict=True)
        ]
        self.handoffs: dict[int, Handoff] = {}
        self.actions: deque[tuple[str, int]] = deque()
        """Steps of handoffs that can be taken now."""
        self.images: deque[list[int]] = deque()
        """[request, images] that wait for an encode worker."""
        self.images_left: dict[int, int] = {}
        self.free_encoders = list(range(plan.encode.workers)) if plan.encode else []
        self.events: list[tuple[int, int, int, int, object]] = []
        self.now = 0
        self._events = 0
        self._left = len(requests)
        zeros = [0] * len(plan.roles)
        self.outcome.peak_running, self.outcome.peak_pass_tokens = list(zeros), list(zeros)
        self.outcome.peak_blocks, self.outcome.evictions = list(zeros), list(zeros)

    def run(self) -> Outcome:
        while self._left:
            times = [self.events[0][0]] if self.events else []
            arrival = self.arrivals.next_ns(self.now)
            if arrival is not None:
                times.append(arrival)
            if not times:
                self._unblock()
                continue
            self.now = min(times)
            self._settle()
        for at, workers in enumerate(self.pools):
            for rank in (rank for worker in workers for rank in worker.ranks):
                scheduler = rank.scheduler
                cache = scheduler.pool if isinstance(scheduler, PagedScheduler) else scheduler.cache
                self.outcome.evictions[at] += cache.evictions
        return self.outcome

    def _unblock(self) -> None:
        """Nothing will ever happen: let the first rank that can go on out of order do so (the peer fails)."""
        for at in reversed(range(len(self.pools))):
            for worker in self.pools[at]:
                for rank in worker.ranks:
                    rank.scheduler.out_of_order = True
                started = self._start_pass(at, worker)
                for rank in worker.ranks:
                    rank.scheduler.out_of_order = False
                if started:
                    return
        raise StalledReplay(f"{self._left} requests are left at {self.now} ns and nothing can move them")

    def _settle(self) -> None:
        """Do everything that happens at this instant: ends, then arrivals, then the steps and passes they allow."""
        changed = True
        while changed:
            changed = False
            while self.events and self.events[0][0] <= self.now:
                _, kind, _, _, what = heapq.heappop(self.events)
                self._happen(kind, what)
                changed = True
            while self.actions:
                self._act(*self.actions.popleft())
                changed = True
            while (request := self.arrivals.take(self.now)) is not None:
                self._arrive(request)
                changed = True
            changed |= self._start_encoding()
            for at in range(len(self.pools)):
                changed |= self._start_passes(at)

    def _start_passes(self, at: int) -> bool:
        return bool(sum([self._start_pass(at, worker) for worker in self.pools[at]]))

    def _at(self, time: int, kind: int, what: object, place: int = 0) -> None:
        self._events += 1
        heapq.heappush(self.events, (time, kind, place, self._events, what))

    def _happen(self, kind: int, what: object) -> None:
        if kind == PASS_DONE:
            self._end_pass(*what)  # type: ignore[misc]
        elif kind == ENCODED:
            self._end_encoding(*what)  # type: ignore[misc]
        else:
            self.actions.append(("activate", what))  # type: ignore[arg-type]

    # -- arrivals, and images

    def _arrive(self, request: int) -> None:
        self.outcome.arrival_ns[request] = self.now
        isl, osl = int(self.requests.isl[request]), int(self.requests.osl[request])
        cause = self.plan.cause_of_rejection(isl, osl)
        if cause is not None:
            self.outcome.status[request] = STATUS[cause]
            self._end(request)
        elif self.plan.encode and self.requests.images[request]:
            self.images_left[request] = int(self.requests.images[request])
            self.images.append([request, self.images_left[request]])
        else:
            self._enter(request)

    def _start_encoding(self) -> bool:
        """Let idle encode workers take images, first come, up to their batch."""
        started = False
        while self.plan.encode and self.free_encoders and self.images:
            encoder = heapq.heappop(self.free_encoders)
            room = self.plan.encode.max_num_seqs
            batch: list[tuple[int, int]] = []
            while room and self.images:
                request, count = self.images[0]
                taken = min(room, count)
                batch.append((request, taken))
                room -= taken
                self.images[0][1] -= taken
                if taken == count:
                    self.images.popleft()
            times = self.plan.encode.times
            duration = times.prefill_ns(sum(count for _, count in batch)) + times.host_overhead_ns
            self._at(self.now + duration, ENCODED, (encoder, batch))
            started = True
        return started

    def _end_encoding(self, encoder: int, batch: list[tuple[int, int]]) -> None:
        heapq.heappush(self.free_encoders, encoder)
        for request, count in batch:
            self.images_left[request] -= count
            if not self.images_left[request]:
                del self.images_left[request]
                self._enter(request)

    def _enter(self, request: int) -> None:
        """A request comes to its first pool of workers that generate."""
        if not self.plan.disaggregated:
            self._submit(request, 0, int(self.requests.osl[request]))
            return
        self.handoffs[request] = Handoff()
        first = "reserve" if self.plan.roles[0].backend == "sglang" else "prefill"
        self.actions.append((first, request))

    def _submit(self, request: int, at: int, outputs: int) -> tuple[Worker, Rank, Sequence]:
        isl = int(self.requests.isl[request])
        worker, rank = self.routers[at].choose(request, isl)
        sequence = Sequence(request, isl, outputs, self.keys[at])
        if at == 0:
            rank.scheduler.submit(sequence)
        else:
            rank.scheduler.expect(sequence)
        (self.outcome.worker if at == 0 else self.outcome.decode_worker)[request] = self.pools[at].index(worker)
        return worker, rank, sequence

    # -- from prefill to decode

    def _act(self, step: str, request: int) -> None:
        """One step of a handoff.

        Source first (vLLM, TensorRT-LLM): prefill, reserve, transfer, activate, release. SGLang reserves before it
        computes the prompt.
        """
        handoff = self.handoffs[request]
        if step == "prefill":
            worker, rank, handoff.source_sequence = self._submit(request, 0, 1)
            handoff.source = (worker, rank)
        elif step == "reserve":
            worker, rank, handoff.target_sequence = self._submit(request, 1, int(self.requests.osl[request]))
            handoff.target = (worker, rank)
            if not worker.busy:
                self._reserve_next(rank)
        elif step == "transfer":
            self._transfer(request, handoff)
        elif step == "activate":
            assert handoff.target is not None
            assert handoff.target_sequence is not None
            worker, rank = handoff.target
            if worker.busy:
                worker.deferred.append((step, request))
                return
            rank.scheduler.activate(handoff.target_sequence)
            rank.publish()
            self.actions.append(("release", request))
            self._reserve_next(rank)
        elif step == "release":
            assert handoff.source is not None
            assert handoff.source_sequence is not None
            worker, rank = handoff.source
            if worker.busy:
                worker.deferred.append((step, request))
                return
            rank.scheduler.release(handoff.source_sequence)
            rank.publish()
            self.routers[0].done(rank, request)

    def _reserve_next(self, rank: Rank) -> bool:
        sequence = rank.scheduler.reserve_next()
        if sequence is None:
            return False
        handoff = self.handoffs[sequence.request]
        handoff.reserved = True
        self._advance(sequence.request, handoff)
        return True

    def _advance(self, request: int, handoff: Handoff) -> None:
        if handoff.held and handoff.target is None:
            self.actions.append(("reserve", request))
        elif handoff.reserved and handoff.source is None:
            self.actions.append(("prefill", request))
        elif handoff.held and handoff.reserved:
            self.actions.append(("transfer", request))

    def _transfer(self, request: int, handoff: Handoff) -> None:
        transfer = self.plan.transfer
        assert handoff.source is not None
        assert handoff.target_sequence is not None
        tokens = int(self.requests.isl[request])
        if transfer.only_missing:
            tokens = handoff.target_sequence.fresh_tokens
        link = transfer.link_ns(tokens)
        start = self.now
        if transfer.contention:
            source = handoff.source[0]
            start = max(self.now, source.link_free_ns)
            source.link_free_ns = start + link
        end = start + link + transfer.latency_ns
        if end == self.now:
            self.actions.append(("activate", request))
        else:
            self._at(end, TRANSFERRED, request)

    # -- passes

    def _start_pass(self, at: int, worker: Worker) -> bool:
        if worker.busy:
            return False
        duration = worker.start_pass()
        if duration is None:
            # A pass that computes nothing ends at once; like any end it lets the next transfer in.
            blocked = [rank for rank in worker.ranks if rank.scheduler.has_work]
            return bool(sum([self._reserve_next(rank) for rank in blocked]))
        self.outcome.passes += 1
        for rank, done in zip(worker.ranks, worker.passes, strict=True):
            for sequence, cached in done.admitted:
                self._note_admission(at, sequence, cached)
            for sequence in done.preempted:
                self.outcome.preemptions[sequence.request] += 1
            self._note_peaks(at, rank, done)
        self._at(self.now + duration, PASS_DONE, (at, worker), at * 1_000_000 + self.pools[at].index(worker))
        return True

    def _note_admission(self, at: int, sequence: Sequence, cached: int) -> None:
        request = sequence.request
        first = self.outcome.admitted_ns if at == 0 else self.outcome.decode_admitted_ns
        if first[request] < 0:
            first[request] = self.now
        if at == 0:
            self.outcome.reused_tokens[request] = max(cached, self.outcome.reused_tokens[request])

    def _note_peaks(self, at: int, rank: Rank, done: Pass) -> None:
        running = len(rank.scheduler.running) + len(done.finished)
        tokens = sum(part.tokens for part in done.scheduled.values())
        self.outcome.peak_running[at] = max(self.outcome.peak_running[at], running)
        self.outcome.peak_pass_tokens[at] = max(self.outcome.peak_pass_tokens[at], tokens)
        self.outcome.peak_blocks[at] = max(self.outcome.peak_blocks[at], rank.scheduler.peak_blocks)

    def _end_pass(self, at: int, worker: Worker) -> None:
        worker.busy = False
        self.actions.extend(worker.deferred)
        worker.deferred.clear()
        for rank, done in zip(worker.ranks, worker.passes, strict=True):
            rank.publish()
            held: list[int] = []
            for sequence in done.emitted:
                self.routers[at].first_token(rank, sequence.request)
                if self.plan.disaggregated and at == 0:
                    held.append(sequence.request)
                    continue
                self._note_token(sequence.request)
                if sequence.generated == sequence.outputs and sequence in done.finished:
                    self.routers[at].done(rank, sequence.request)
                    self.outcome.status[sequence.request] = COMPLETED
                    self._end(sequence.request)
            for request in held:
                handoff = self.handoffs[request]
                handoff.held = True
                self._advance(request, handoff)
            self._reserve_next(rank)
        worker.passes = []

    def _note_token(self, request: int) -> None:
        last = int(self.outcome.last_token_ns[request])
        if last < 0:
            self.outcome.first_token_ns[request] = self.now
        elif request >= self.requests.warmup:
            self.outcome.gaps.add(self.now - last)
        self.outcome.last_token_ns[request] = self.now

    def _end(self, request: int) -> None:
        self._left -= 1
        self.arrivals.ended(request, self.now)
