"""The scheduler of SGLang: prompts first, then a pass of decoding; room for outputs is estimated, and taken back."""

from collections import deque

from dgdr_job.replay.plan import (
    SGLANG_CLIP_MAX_NEW_TOKENS,
    SGLANG_INITIAL_NEW_TOKEN_RATIO,
    SGLANG_LEAST_NEW_TOKEN_SHARE,
    SGLANG_NEW_TOKEN_DECAY_STEPS,
    SGLANG_RETRACT_DECODE_STEPS,
    RolePlan,
)
from dgdr_job.replay.reference.radix import Node, RadixCache
from dgdr_job.replay.reference.sequence import Pass, Scheduled, Sequence


class Lease:
    """The pages of a sequence: those below ``node`` are in the tree, the rest is its own."""

    def __init__(self, node: Node, in_tree: int, pages: int) -> None:
        self.node = node
        self.in_tree = in_tree
        self.pages = pages


class SglangScheduler:
    """One rank. A pass computes prompts or decodes, never both."""

    def __init__(self, role: RolePlan) -> None:
        self.role = role
        self.cache = RadixCache(role.num_blocks)
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.arrived: deque[Sequence] = deque()
        """Sequences whose prompt came by a transfer."""
        self.pending: deque[Sequence] = deque()
        self.reserved: list[Sequence] = []
        self.capacity_generation = 0
        self.out_of_order = False
        """Whether prompts need not wait for transfers, and who does not run gives its pages back: nothing else would
        ever happen."""
        self.leases: dict[int, Lease] = {}
        self.new_token_ratio = SGLANG_INITIAL_NEW_TOKEN_RATIO
        self._least_ratio = SGLANG_INITIAL_NEW_TOKEN_RATIO * SGLANG_LEAST_NEW_TOKEN_SHARE
        self._ratio_step = (SGLANG_INITIAL_NEW_TOKEN_RATIO - self._least_ratio) / SGLANG_NEW_TOKEN_DECAY_STEPS
        self._pass = Pass()

    # -- what comes from outside

    def submit(self, sequence: Sequence) -> None:
        """A request whose prompt is computed here."""
        self.waiting.append(sequence)

    def expect(self, sequence: Sequence) -> None:
        """A request whose prompt comes by a transfer, as soon as there is room."""
        self.pending.append(sequence)

    def reserve_next(self) -> Sequence | None:
        """Room for the first transfer that waits, if there is any. Tried again only when capacity changed."""
        if not self.pending or self.pending[0].attempt == self.capacity_generation:
            return None
        sequence = self.pending[0]
        sequence.attempt = self.capacity_generation
        matched, node = self._match(sequence, sequence.isl // self.role.block_size)
        fresh = self._pages(sequence.isl) - matched
        if not self.cache.make_room(fresh):
            self.cache.unlock(node)
            return None
        self.cache.take(fresh)
        self.leases[sequence.request] = Lease(node, matched, matched + fresh)
        sequence.fresh_tokens = fresh * self.role.block_size
        self.reserved.append(sequence)
        return self.pending.popleft()

    def activate(self, sequence: Sequence) -> None:
        """The transfer is done: the prompt is here, and the sequence waits to run."""
        self.reserved.remove(sequence)
        sequence.computed = sequence.isl
        self._keep(sequence)
        self.arrived.append(sequence)

    def release(self, sequence: Sequence) -> None:
        """A sequence has ended: its full pages stay in the tree, the others are free."""
        lease = self.leases.pop(sequence.request)
        self.capacity_generation += 1
        if self.role.prefix_caching:
            whole = min(sequence.known, sequence.computed) // self.role.block_size
            self.cache.free += lease.pages - whole
            there, _ = self.cache.insert(lease.node, sequence.keys(whole)[lease.in_tree :])
            self.cache.free += there
        else:
            self.cache.free += lease.pages
        self.cache.unlock(lease.node)

    @property
    def has_work(self) -> bool:
        """Whether a pass can be run."""
        return bool(self.running or self.waiting or self.arrived)

    @property
    def peak_blocks(self) -> int:
        """Most pages that requests held at once."""
        return self.cache.peak

    # -- a pass

    def run_pass(self) -> Pass:
        """Choose what the next pass computes, and move everything to its end."""
        self._pass = Pass()
        while self.arrived and len(self.running) < self.role.max_num_seqs:
            sequence = self.arrived.popleft()
            self.running.append(sequence)
            self._pass.admitted.append((sequence, 0))
        waits = self.arrived or self.pending
        prompts = [] if waits and not self.out_of_order else self._admit_prompts()
        if self.out_of_order and not prompts:
            for sequence in [one for one in self.waiting if one.request in self.leases]:
                self._retract(sequence)
            while self.arrived:
                self._retract(self.arrived[0])
                self.waiting.append(self.arrived.popleft())
        if prompts:
            self._finish_prompts(prompts)
        else:
            self._decode()
        return self._pass

    def _admit_prompts(self) -> list[Sequence]:
        """Prompts, or one chunk of a long one, that fit the pass and leave room for the outputs that are expected.

        Neither is asked where the answer would be no for ever: the first prompt of a pass need not fit the pass in
        whole pages, and a prompt that has the rank for itself needs no estimate.
        """
        expected = sum(self._expected_output(one) * self.new_token_ratio for one in self.running)
        room = (self.cache.free + self.cache.evictable) * self.role.block_size - expected
        input_left, chunk_left = self.role.max_prefill_tokens, self.role.max_num_batched_tokens
        chosen: list[Sequence] = []
        while self.waiting and len(chosen) < self.role.max_num_seqs - len(self.running) and chunk_left > 0:
            sequence = self.waiting[0]
            start = sequence.computed or self._cached(sequence)
            left = sequence.known - start
            tokens = left
            if left > chunk_left:
                tokens = min(left, chunk_left // self.role.block_size * self.role.block_size)
                tokens = tokens if tokens or chosen else self.role.block_size
            charged = self._pages(tokens) * self.role.block_size
            output = self._expected_output(sequence) if tokens == left else 0
            alone = not self.running and not chosen and self.leases.keys() <= {sequence.request}
            if chosen and (not tokens or charged > input_left or charged > chunk_left):
                break
            if charged + output >= room and not alone:
                break
            if not self._compute_prompt(sequence, start + tokens):
                break
            room -= charged + output
            input_left -= charged
            chunk_left -= charged
            chosen.append(self.waiting.popleft())
        return chosen

    def _expected_output(self, sequence: Sequence) -> int:
        return min(sequence.outputs - sequence.generated, SGLANG_CLIP_MAX_NEW_TOKENS)

    def _cached(self, sequence: Sequence) -> int:
        """Tokens of the cached prefix; the last token is always computed."""
        if not self.role.prefix_caching:
            return 0
        return self.cache.match(sequence.keys((sequence.known - 1) // self.role.block_size)) * self.role.block_size

    def _match(self, sequence: Sequence, pages: int) -> tuple[int, Node]:
        return self.cache.match_and_lock(sequence.keys(pages)) if self.role.prefix_caching else (0, self.cache.root)

    def _compute_prompt(self, sequence: Sequence, end: int) -> bool:
        """Take the pages up to ``end``; False when there are not enough."""
        lease = self.leases.get(sequence.request)
        if lease is None:
            matched, node = self._match(sequence, (sequence.known - 1) // self.role.block_size)
            fresh = self._pages(end) - matched
            if not self.cache.make_room(fresh):
                self.cache.unlock(node)
                return False
            start = matched * self.role.block_size
            self.leases[sequence.request] = Lease(node, matched, matched + fresh)
            self._pass.admitted.append((sequence, start))
        else:
            start, fresh = sequence.computed, self._pages(end) - lease.pages
            if not self.cache.make_room(fresh):
                return False
            lease.pages += fresh
        self.cache.take(fresh)
        sequence.computed = end
        self._pass.scheduled[sequence.request] = Scheduled(end - start, start, end)
        return True

    def _finish_prompts(self, prompts: list[Sequence]) -> None:
        """Chunks go back to the head of the line; whole prompts yield their first token at the end of the pass."""
        fresh = []
        for sequence in prompts:
            if sequence.computed < sequence.known:
                self._keep(sequence)
                self.waiting.appendleft(sequence)
            else:
                fresh.append(sequence)
        for sequence in [one for one in fresh if one.outputs - one.generated == 1]:
            # The last token needs no room: it is never computed.
            fresh.remove(sequence)
            self._yield(sequence)
        self.running += fresh
        if self._grow_by_one(fresh):
            for sequence in fresh:
                sequence.computed += 1
                self._yield(sequence)
                self._keep(sequence)

    def _decode(self) -> None:
        """One token for all that run; when pages run out, the sequence with the least output goes back to the line."""
        retracted: list[Sequence] = []
        while len(self.running) > 1 and self._growth(self.running) > self.cache.free + self.cache.evictable:
            victim = min(self.running, key=lambda one: one.generated)
            self.running.remove(victim)
            self._retract(victim)
            retracted.append(victim)
        if retracted:
            known = sum(one.generated for one in self.running) + SGLANG_RETRACT_DECODE_STEPS * len(self.running)
            self.new_token_ratio = min(1.0, known / (sum(one.outputs for one in self.running) + 1))
            self.capacity_generation += 1
        if self.running and self._grow_by_one(self.running):
            if self.role.kind != "prefill":
                self._pass.decode_batch = len(self.running)
                self._pass.decode_context = sum(one.known for one in self.running)
            for sequence in list(self.running):
                sequence.computed += 1
                self._yield(sequence)
                if sequence.generated < sequence.outputs:
                    self._keep(sequence)
                else:
                    self.running.remove(sequence)
        self.waiting += retracted
        if not retracted:
            self.new_token_ratio = max(self._least_ratio, self.new_token_ratio - self._ratio_step)

    def _pages(self, tokens: int) -> int:
        return -(-tokens // self.role.block_size)

    def _growth(self, sequences: list[Sequence]) -> int:
        return sum(max(0, self._pages(one.known + 1) - self.leases[one.request].pages) for one in sequences)

    def _grow_by_one(self, sequences: list[Sequence]) -> bool:
        growth = self._growth(sequences)
        if not self.cache.make_room(growth):
            self.cache.evict(growth - self.cache.free)
            return False
        self.cache.take(growth)
        for sequence in sequences:
            lease = self.leases[sequence.request]
            lease.pages = max(lease.pages, self._pages(sequence.known + 1))
        return True

    def _yield(self, sequence: Sequence) -> None:
        sequence.generated += 1
        self._pass.emitted.append(sequence)
        if sequence.generated == sequence.outputs:
            self._pass.finished.append(sequence)
            if self.role.kind != "prefill":
                self.release(sequence)

    def _keep(self, sequence: Sequence) -> None:
        """Put the full pages that were computed into the tree."""
        lease = self.leases[sequence.request]
        whole = sequence.computed // self.role.block_size
        if not self.role.prefix_caching or whole <= lease.in_tree:
            return
        there, node = self.cache.insert(lease.node, sequence.keys(whole)[lease.in_tree :])
        if node is not lease.node:
            self.cache.lock(node)
            self.cache.unlock(lease.node)
        self.cache.free += there
        lease.node, lease.in_tree = node, whole

    def _retract(self, sequence: Sequence) -> None:
        lease = self.leases.pop(sequence.request)
        self.cache.free += lease.pages - lease.in_tree
        self.cache.unlock(lease.node)
        sequence.computed = 0
        sequence.was_preempted = True
        self._pass.preempted.append(sequence)
