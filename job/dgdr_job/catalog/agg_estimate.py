"""The core's aggregated estimate, without what nobody reads.

``run_agg`` of the core's backend spends 0.3 ms at each point on summaries of memory, energy and operators, and asks for
the same decode step again at every number of context tokens; a search asks thousands of points. Here is its schedule
alone, in its own order of operations, with the rules of each engine asked of the core's backend. The results
are equal in every bit, which tests/job/catalog/test_agg_estimate.py checks against ``run_agg``.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol


class AggregatedPoint(NamedTuple):
    """The core's aggregated estimate of one worker.

    Attributes:
        ttft_ms: Mean time to first token.
        tpot_ms: Mean time per output token, 0 for one output token.
        requests_per_s: Requests of the whole worker, all data-parallel ranks and pipeline stages.
    """

    ttft_ms: float
    tpot_ms: float
    requests_per_s: float


class EngineRules(Protocol):
    """How an engine schedules: the part of the core's ``BaseBackend`` that its aggregated estimate asks."""

    def _mix_step_gen_tokens(self, b: int, ctx_tokens: int, isl: int, decode_iterations: float) -> int: ...
    def _mix_step_efficiency(self, ctx_tokens: int, gen_tokens: int) -> float: ...
    def _tpot_mix_steps(self, num_mix_steps: int) -> int: ...
    def _ttft_queuing_factor(self, b: int, steps_to_finish_ctx: float) -> float: ...
    def _prefill_dispatch_overhead_ms(self, model: Any) -> float: ...  # noqa: ANN401  (an object of the package)
    def _throughput_cap(self, step_throughput: float, ttft: float, tpot: float, b: int, osl: int) -> float: ...


class AggEstimate:
    """The aggregated estimate of one worker at one length of prompt and output."""

    def __init__(
        self,
        rules: EngineRules,
        model: Any,  # noqa: ANN401
        handle: Any,  # noqa: ANN401
        *,
        isl: int,
        osl: int,
    ) -> None:
        """Take the core's backend, model object and compiled engine; ``isl`` counts visual tokens."""
        self._rules, self._handle, self._isl, self._osl = rules, handle, isl, osl
        self._ranks = model.config.pp_size * model.config.attention_dp_size
        self._dispatch_ms = rules._prefill_dispatch_overhead_ms(model)  # noqa: SLF001
        self._decode_ms: Callable[[int], float] = cache(self._decode_step_ms)

    def point(self, batch: int, ctx_tokens: int, encoder_ms: float = 0.0) -> AggregatedPoint:
        """The estimate at a batch and a number of prompt tokens per pass.

        For one output token the core gives no rate; it is then the batch over the time of its prefill passes,
        and the time per output token is 0.

        Args:
            batch: Requests on each rank, at least 1.
            ctx_tokens: Prompt tokens of a mixed pass.
            encoder_ms: Time to encode the images of the batch inside the worker.
        """
        rules, isl, osl = self._rules, self._isl, self._osl
        iterations = 1.0 + max(osl - 1, 0)
        prefill_passes = math.ceil(isl * batch / ctx_tokens)
        if batch == 1:
            decoding, mixed, counted, pure, pure_batch = 0, 1, 0, iterations - 1.0, 1
        else:
            decoding = rules._mix_step_gen_tokens(batch, ctx_tokens, isl, iterations)  # noqa: SLF001
            mixed = prefill_passes
            if mixed >= iterations:
                counted, pure, pure_batch = mixed, 0.0, 0
            else:
                counted, pure, pure_batch = rules._tpot_mix_steps(mixed), iterations - mixed, batch  # noqa: SLF001
        efficiency = rules._mix_step_efficiency(ctx_tokens, decoding)  # noqa: SLF001
        mixed_ms = self._handle.mixed_step_latency(ctx_tokens, decoding, isl, osl) * efficiency
        decode_ms = self._decode_ms(pure_batch)

        prefill_ms = mixed_ms / efficiency if efficiency > 0 else mixed_ms
        of_request_ms = prefill_ms * math.ceil(isl / ctx_tokens) + self._dispatch_ms
        ttft_ms = encoder_ms + of_request_ms * rules._ttft_queuing_factor(batch, prefill_passes)  # noqa: SLF001
        total_ms = encoder_ms + mixed * mixed_ms + pure * decode_ms
        if osl <= 1:
            return AggregatedPoint(float(ttft_ms), 0.0, 1000 * batch * self._ranks / total_ms)
        tpot_ms = (mixed_ms * counted + decode_ms * pure) / (counted + pure) if counted + pure > 0 else 0.0
        tokens_per_s = 1000 / total_ms * batch * (osl - 1) if total_ms > 0 else 0.0
        tokens_per_s = rules._throughput_cap(tokens_per_s, ttft_ms, tpot_ms, batch, osl) * self._ranks  # noqa: SLF001
        return AggregatedPoint(float(ttft_ms), float(tpot_ms), float(tokens_per_s / (osl - 1)))

    def _decode_step_ms(self, batch: int) -> float:
        """Time of one pass of decoding requests alone; 0 for none."""
        return float(self._handle.decode_step_latency(batch, self._isl, self._osl)) if batch else 0.0
