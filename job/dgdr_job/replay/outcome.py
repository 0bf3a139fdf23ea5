"""What a replay did to each request, before anything is summed up."""

from dataclasses import dataclass, field

import numpy as np

from dgdr_job.replay.gaps import Gaps
from dgdr_job.replay.requests import Ints

COMPLETED, REJECTED_KV, REJECTED_TOKENS = 1, 2, 3
STATUS = {"kv_capacity": REJECTED_KV, "batched_tokens": REJECTED_TOKENS}


def _unset(count: int) -> Ints:
    return np.full(count, -1, dtype=np.int64)


@dataclass
class Outcome:
    """Arrays of shape [n]; -1 where a thing never happened. Times in nanoseconds from the start."""

    count: int
    arrival_ns: Ints = field(init=False)
    admitted_ns: Ints = field(init=False)
    """First admission to a running batch."""
    decode_admitted_ns: Ints = field(init=False)
    """First admission on the decode worker."""
    first_token_ns: Ints = field(init=False)
    last_token_ns: Ints = field(init=False)
    reused_tokens: Ints = field(init=False)
    """Prompt tokens found in the prefix cache at the last admission."""
    worker: Ints = field(init=False)
    """The aggregated or prefill worker."""
    decode_worker: Ints = field(init=False)
    preemptions: Ints = field(init=False)
    status: Ints = field(init=False)
    peak_running: list[int] = field(default_factory=list)
    """Most sequences of one rank at once, by role."""
    peak_pass_tokens: list[int] = field(default_factory=list)
    """Most tokens of one pass of a rank, by role."""
    peak_blocks: list[int] = field(default_factory=list)
    """Most blocks in use of one rank at once, by role."""
    evictions: list[int] = field(default_factory=list)
    """Cached blocks thrown out, by role."""
    passes: int = 0
    gaps: Gaps = field(default_factory=Gaps)
    """Times between the tokens of the requests after the warm-up."""

    def __post_init__(self) -> None:
        for name in ("arrival_ns", "admitted_ns", "decode_admitted_ns", "first_token_ns", "last_token_ns"):
            setattr(self, name, _unset(self.count))
        self.worker, self.decode_worker = _unset(self.count), _unset(self.count)
        self.reused_tokens, self.preemptions, self.status = (np.zeros(self.count, dtype=np.int64) for _ in range(3))
