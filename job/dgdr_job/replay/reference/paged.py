"""The scheduler of vLLM and, with other rules of admission, of TensorRT-LLM."""

from collections import deque

from dgdr_job.replay.plan import RolePlan
from dgdr_job.replay.reference.blocks import Block, BlockPool
from dgdr_job.replay.reference.sequence import Pass, Scheduled, Sequence


class PagedScheduler:
    """One rank: a token budget for each pass, blocks taken as tokens are computed.

    vLLM admits what fits now and preempts when blocks run out; TensorRT-LLM admits what fits to its end.
    """

    def __init__(self, role: RolePlan) -> None:
        self.role = role
        self.pool = BlockPool(role.num_blocks)
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.pending: deque[Sequence] = deque()
        """Transfers that wait for room here."""
        self.reserved: list[Sequence] = []
        """Transfers under way, with their blocks."""
        self.capacity_generation = 0
        self.no_eviction = role.backend == "trtllm"
        self.out_of_order = False
        """Whether any that waits may run when the first cannot: nothing else would ever happen."""
        self._pass = Pass()
        self._budget = 0
        self._arrivals = 0

    # -- what comes from outside

    def submit(self, sequence: Sequence) -> None:
        """A request whose prompt is computed here."""
        sequence.order = self._arrivals
        self._arrivals += 1
        self.waiting.append(sequence)

    def expect(self, sequence: Sequence) -> None:
        """A request whose prompt comes by a transfer, as soon as there is room."""
        sequence.order = self._arrivals
        self._arrivals += 1
        self.pending.append(sequence)

    def reserve_next(self) -> Sequence | None:
        """Room for the first transfer that waits, if there is any. Tried again only when capacity changed."""
        if not self.pending:
            return None
        sequence = self.pending[0]
        if len(self.running) >= self.role.max_num_seqs:
            sequence.attempt = self.capacity_generation
            return None
        if sequence.attempt == self.capacity_generation:
            return None
        sequence.attempt = self.capacity_generation
        blocks = -(-sequence.isl // self.role.block_size)
        if self.no_eviction:
            if -(-sequence.final_length // self.role.block_size) > self._room_to_completion(sequence):
                return None
            hits: list[Block] = []
        else:
            hits = self._hits(sequence, sequence.isl)
        taken = self.pool.take(hits, blocks - len(hits))
        if taken is None:
            return None
        sequence.blocks = taken
        sequence.fresh_tokens = (blocks - len(hits)) * self.role.block_size
        self.reserved.append(sequence)
        return self.pending.popleft()

    def activate(self, sequence: Sequence) -> None:
        """The transfer is done: the prompt is here, and the sequence takes its place in the line."""
        self.reserved.remove(sequence)
        sequence.computed = sequence.isl
        sequence.arrived_computed = True
        if self.role.prefix_caching:
            for block, key in zip(sequence.blocks, sequence.keys(sequence.isl // self.role.block_size), strict=False):
                if block.key is None:
                    self.pool.publish(block, key)
        place = next((at for at, other in enumerate(self.waiting) if other.order > sequence.order), len(self.waiting))
        self.waiting.insert(place, sequence)

    def release(self, sequence: Sequence) -> None:
        """Give a sequence's blocks back, the last one first."""
        while sequence.blocks:
            self.pool.release(sequence.blocks.pop())
        self.capacity_generation += 1

    @property
    def has_work(self) -> bool:
        """Whether a pass can be run."""
        return bool(self.running or self.waiting)

    @property
    def peak_blocks(self) -> int:
        """Most blocks that requests held at once."""
        return self.pool.peak

    # -- a pass

    def run_pass(self) -> Pass:
        """Choose what the next pass computes, and move everything to its end."""
        self._pass = Pass()
        self._budget = self.role.max_num_batched_tokens
        at = 0
        while at < len(self.running) and self._budget > 0:
            sequence = self.running[at]
            if not self._schedule(sequence, 0):
                if sequence in self.running:
                    break
                continue
            at += 1
        while not self._pass.preempted and len(self.running) < self.role.max_num_seqs:
            if not self._admit_next():
                break
        if self.out_of_order and not self.running:
            any(self._admit(sequence) for sequence in list(self.waiting))
        self._yield_tokens()
        return self._pass

    def _schedule(self, sequence: Sequence, cached: int) -> bool:
        """Give a sequence its part of the pass; False when it gets none.

        A running sequence that finds no block preempts others, and in the end itself.
        """
        start = sequence.computed + cached
        prompt_left = max(0, sequence.isl - start)
        whole = not self.role.chunked_prefill and prompt_left <= self.role.max_num_batched_tokens
        if whole and prompt_left > self._budget:
            return False
        tokens = min(sequence.known - start, self._budget)
        if tokens == 0 and sequence.known > start:
            return False
        hits = self._hits(sequence, cached)
        while not self._grow(sequence, start + tokens, hits):
            if self.no_eviction or self._preempt() is sequence:
                return False
        sequence.computed = start + tokens
        self._publish_full_blocks(sequence, start)
        self._budget -= tokens
        self._pass.scheduled[sequence.request] = Scheduled(
            tokens, min(start, sequence.isl), min(start + tokens, sequence.isl)
        )
        return True

    def _grow(self, sequence: Sequence, tokens: int, hits: list[Block]) -> bool:
        missing = -(-tokens // self.role.block_size) - len(sequence.blocks)
        if missing <= 0:
            return True
        taken = self.pool.take(hits, missing - len(hits))
        if taken is None:
            return False
        sequence.blocks += taken
        return True

    def _publish_full_blocks(self, sequence: Sequence, start: int) -> None:
        if not self.role.prefix_caching:
            return
        first, last = start // self.role.block_size, sequence.computed // self.role.block_size
        for block, key in zip(sequence.blocks[first:last], sequence.keys(last)[first:], strict=True):
            if block.key is None:
                self.pool.publish(block, key)

    def _preempt(self) -> Sequence:
        """Take the blocks of the newest (or oldest) running sequence; it waits at the front and computes anew."""
        victim = self.running.pop(0 if self.role.preempt_oldest else -1)
        self.release(victim)
        victim.computed = 0
        victim.was_preempted = True
        self.waiting.appendleft(victim)
        self._pass.preempted.append(victim)
        undone = self._pass.scheduled.pop(victim.request, None)
        if undone is not None:
            self._budget += undone.tokens
        return victim

    def _hits(self, sequence: Sequence, tokens: int) -> list[Block]:
        if not self.role.prefix_caching or tokens == 0:
            return []
        return self.pool.find(sequence.keys(tokens // self.role.block_size))

    def _admit_next(self) -> bool:
        """Let the head of the line run, if there is room; False ends the admissions of this pass."""
        if self.pending:
            # What waits for a transfer comes before prompts that are computed here.
            sequence = next((one for one in self.waiting if self._is_computed(one)), None)
        else:
            sequence = self.waiting[0] if self.waiting else None
        return sequence is not None and self._admit(sequence)

    def _admit(self, sequence: Sequence) -> bool:
        cached = 0
        if not self._is_computed(sequence):
            hits = self._hits(sequence, sequence.known)
            cached = len(hits) * self.role.block_size
            if not self.no_eviction:
                # The last token is computed in any case, and with it its block.
                cached = min(cached, (sequence.known - 1) // self.role.block_size * self.role.block_size)
            in_use = min(sum(block.users > 0 for block in hits), cached // self.role.block_size)
            if not self._fits(sequence, in_use):
                return False
        if not self._schedule(sequence, cached):
            return False
        self.waiting.remove(sequence)
        self.running.append(sequence)
        self._pass.admitted.append((sequence, cached))
        # A prompt that came by a transfer needs no token; one such may follow when the budget is spent.
        return self._budget > 0 or self._pass.scheduled[sequence.request].tokens > 0

    def _is_computed(self, sequence: Sequence) -> bool:
        return sequence.computed >= sequence.isl

    def _fits(self, sequence: Sequence, blocks_in_use: int) -> bool:
        if self.no_eviction:
            needed = -(-sequence.final_length // self.role.block_size) - blocks_in_use
            return needed <= self._room_to_completion(sequence)
        needed = -(-sequence.known // self.role.block_size) - blocks_in_use
        return needed <= self.role.num_blocks - self.pool.used

    def _room_to_completion(self, candidate: Sequence) -> int:
        """Blocks left when all that run, or are on their way here, have grown to their end."""
        promised = [*self.running, *self.reserved, *(one for one in self.waiting if self._is_computed(one))]
        growth = sum(
            max(0, -(-one.final_length // self.role.block_size) - len(one.blocks))
            for one in promised
            if one is not candidate
        )
        return max(0, self.role.num_blocks - self.pool.used - growth)

    def _yield_tokens(self) -> None:
        """All whose known tokens are computed yield the next one at the end of the pass."""
        for sequence in list(self.running):
            if sequence.computed < sequence.known:
                continue
            part = self._pass.scheduled.get(sequence.request)
            prompt_ends = sequence.generated == 0 and part is not None and part.prompt_end > part.prompt_start
            if self.role.kind == "decode" or (self.role.kind == "agg" and not prompt_ends):
                self._pass.decode_batch += 1
                self._pass.decode_context += sequence.known
            sequence.generated += 1
            self._pass.emitted.append(sequence)
            if sequence.generated == sequence.outputs:
                self.running.remove(sequence)
                self._pass.finished.append(sequence)
                if self.role.kind == "prefill":
                    self.capacity_generation += 1
                else:
                    self.release(sequence)
