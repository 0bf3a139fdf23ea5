"""A request inside one rank, and what one pass did."""

from dataclasses import dataclass, field
from typing import Any

from dgdr_job.replay.requests import BlockKeys


class Sequence:
    """What a rank knows of a request.

    A token that was sampled is known at once and computed in the next pass: ``known`` runs one ahead of ``computed``.
    """

    def __init__(self, request: int, isl: int, outputs: int, keys: BlockKeys) -> None:
        self.request = request
        self.isl = isl
        self.outputs = outputs
        """Tokens that this rank generates: one on a prefill worker."""
        self.generated = 0
        self.computed = 0
        self.blocks: list[Any] = []
        self.order = 0
        """Place in the waiting line of a decode worker: by its arrival there, not by the end of its transfer."""
        self.arrived_computed = False
        """Whether the prompt came by a transfer."""
        self.was_preempted = False
        self.attempt = -1
        """Capacity generation of the last attempt to reserve room for the transfer."""
        self.fresh_tokens = 0
        """Tokens of the blocks that the transfer has to fill."""
        self._block_keys = keys
        self._keys: list[int] = []

    @property
    def known(self) -> int:
        """Tokens of the prompt and of the output so far."""
        return self.isl + self.generated

    @property
    def final_length(self) -> int:
        """Tokens at the end."""
        return self.isl + self.outputs

    def keys(self, count: int) -> list[int]:
        """Keys of the first blocks."""
        if len(self._keys) < count:
            self._keys += self._block_keys.of(self.request, len(self._keys), count)
        return self._keys[:count]


@dataclass
class Scheduled:
    """The part of one sequence in a pass."""

    tokens: int
    prompt_start: int
    prompt_end: int


@dataclass
class Pass:
    """What a pass of one rank computes, and what it yields at its end."""

    scheduled: dict[int, Scheduled] = field(default_factory=dict)
    decode_batch: int = 0
    decode_context: int = 0
    admitted: list[tuple[Sequence, int]] = field(default_factory=list)
    """Sequences that began to run, with the prompt tokens found in the cache."""
    preempted: list[Sequence] = field(default_factory=list)
    emitted: list[Sequence] = field(default_factory=list)
    """Sequences that yield a token."""
    finished: list[Sequence] = field(default_factory=list)

    @property
    def prompts(self) -> list[tuple[int, int]]:
        """Of each prompt with new tokens the computed ones before and after the pass."""
        parts = self.scheduled.values()
        return [(part.prompt_start, part.prompt_end) for part in parts if part.prompt_end > part.prompt_start]

    @property
    def did_something(self) -> bool:
        """Whether the pass changed anything."""
        return bool(self.scheduled or self.emitted or self.preempted or self.admitted)
