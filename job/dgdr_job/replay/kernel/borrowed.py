"""Views of arrays that count no references.

A call of one compiled function by another counts the references to each array that it passes, up and down, with atomic
instructions: half of a replay's time. Views by address have nothing to count. Whoever makes them holds the arrays.
"""

from typing import Any

import numpy as np
from dgdr_job.replay.kernel import compiling  # noqa: F401 - names the cache before numba compiles
from numba import carray, njit, types  # type: ignore[attr-defined]
from numba.core import cgutils
from numba.extending import intrinsic

from dgdr_job.replay.kernel.times import Times


@intrinsic
def _pointer(_context, address):  # type: ignore[no-untyped-def]
    def made(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), made


@njit(cache=True)
def integers(array):  # type: ignore[no-untyped-def]
    """A view of a flat array of int64."""
    return carray(_pointer(array.ctypes.data), array.shape, np.int64)  # type: ignore[call-arg]


@njit(cache=True)
def floats(array):  # type: ignore[no-untyped-def]
    """A view of an array of doubles, row by row in memory."""
    return carray(_pointer(array.ctypes.data), array.shape, np.float64)  # type: ignore[call-arg]


@njit(cache=True)
def borrowed_times(times):  # type: ignore[no-untyped-def]
    """Times with views in place of their arrays."""
    return Times(
        times.kind,
        times.prefill_ms,
        times.decode_ms,
        floats(times.prefill_tokens),
        floats(times.prefill_table_ms),
        floats(times.decode_batch),
        floats(times.decode_context),
        floats(times.decode_table_ms),
        floats(times.prompt_counts),
        floats(times.new_tokens),
        floats(times.cached_tokens),
        floats(times.prompt_table_ms),
        floats(times.attention_table_ms),
        times.overhead_ns,
        times.link_ms_per_token,
    )
