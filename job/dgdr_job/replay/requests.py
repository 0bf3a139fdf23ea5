"""The requests of a replay as flat arrays: lengths, arrivals, turns, and what their prompts have in common."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Requests:
    """All arrays of length n have one entry a request, in the order in which requests are released.

    Attributes:
        isl, osl: prompt and output tokens, shape [n].
        arrival_ns: when a request comes; -1: when a slot of the concurrency is free, or its session's turn before ends.
        concurrency: requests (sessions, if there are turns) in flight at most; 0: no cap.
        next_turn: the request that follows this one in its session, or -1.
        think_ns: nanoseconds between the end of a turn and the next one.
        images: images of a request.
        stream: whose tokens fill the prompt beyond its shared units. Requests of one stream say the same at the same
            place; that is how turns share their history.
        unit_tokens: tokens of one shared unit, a multiple of every block size.
        unit_start: where the units of a request begin in ``units``, shape [n + 1].
        units: identities of prompt units. Equal identity means equal content of the unit and of all before it.
        warmup: requests at the start that the metrics leave out.
    """

    isl: Ints
    osl: Ints
    arrival_ns: Ints
    concurrency: int
    next_turn: Ints
    think_ns: int
    images: Ints
    stream: Ints
    unit_tokens: int
    unit_start: Ints
    units: Ints
    warmup: int = 0

    def __len__(self) -> int:
        return len(self.isl)

    @property
    def first_turns(self) -> Ints:
        """The requests that follow no other one, in order."""
        follows = np.zeros(len(self), dtype=bool)
        follows[self.next_turn[self.next_turn >= 0]] = True
        return np.flatnonzero(~follows)


@dataclass(frozen=True)
class BlockKeys:
    """Identities of KV blocks: equal key means equal content of the block and of all before it."""

    requests: Requests
    block_size: int

    @property
    def blocks_per_unit(self) -> int:
        """Whole blocks of one shared unit."""
        return self.requests.unit_tokens // self.block_size

    @property
    def first_own(self) -> int:
        """The least key that belongs to a stream."""
        units = self.requests.units
        return (int(units.max()) + 1) * self.blocks_per_unit if len(units) else 0

    @property
    def stride(self) -> int:
        """Keys of one stream: no request has more blocks."""
        if not len(self.requests):
            return 1
        return int((self.requests.isl + self.requests.osl).max()) // self.block_size + 1

    def of(self, request: int, start: int, end: int) -> list[int]:
        """Keys of the blocks start to end of a request."""
        first, last = int(self.requests.unit_start[request]), int(self.requests.unit_start[request + 1])
        shared = min((last - first) * self.blocks_per_unit, int(self.requests.isl[request]) // self.block_size)
        own = self.first_own + int(self.requests.stream[request]) * self.stride
        per_unit = self.blocks_per_unit
        return [
            int(self.requests.units[first + index // per_unit]) * per_unit + index % per_unit
            if index < shared
            else own + index
            for index in range(start, end)
        ]
