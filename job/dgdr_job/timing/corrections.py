"""From raw times to the rates of the static estimate.

Raw times are the performance model's. The constants are those with which aiconfigurator 0.12 corrects them
(``task_v2.py``: latency corrections; ``sweep.py``: rate degradations and the TTFT factor): they stand for what the
per-operator data leaves out, are not fitted by us, and can all be configured.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Corrections:
    """Constants of the static estimate.

    Attributes:
        prefill_latency: Factor on a prefill pass.
        decode_latency: Factor on a decode step.
        encoder_latency: Factor on an encoder pass.
        prefill_rate: Part of a prefill pool's rate that matching counts on.
        decode_rate: The same of a decode pool.
        encoder_rate: The same of an encoder pool.
        disagg_ttft: Factor on encoder and prefill latency for queueing, in disaggregated serving only.
    """

    prefill_latency: float = 1.1
    decode_latency: float = 1.08
    encoder_latency: float = 1.0
    prefill_rate: float = 0.9
    decode_rate: float = 0.92
    encoder_rate: float = 0.9
    disagg_ttft: float = 1.8


DEFAULTS = Corrections()


@dataclass(frozen=True, eq=False)
class PrefillRates:
    """Corrected prefill rows; one entry per row, rates of one worker before degradation.

    Attributes:
        latency_ms: L = prefill_latency * raw, and of an encoder in the worker encoder_latency * its raw time.
        ttft_ms: disagg_ttft * L, the time to first token of disaggregated serving without encode workers.
        requests_per_s: P = 1000 * b * attention_dp * pp / L.
    """

    latency_ms: FloatArray
    ttft_ms: FloatArray
    requests_per_s: FloatArray


@dataclass(frozen=True, eq=False)
class DecodeRates:
    """Corrected decode rows; one entry per row, rates of one worker before degradation.

    Attributes:
        tpot_ms: decode_latency * decode time of the whole output / (osl - 1); 0 for one output token.
        requests_per_s: D = 1000 * b * attention_dp * pp / (tpot * (osl - 1)); infinite for one output token.
    """

    tpot_ms: FloatArray
    requests_per_s: FloatArray


def correct_prefill(
    batch: npt.NDArray[np.int64],
    latency_ms: FloatArray,
    *,
    ranks: int,
    encoder_ms: FloatArray | float = 0.0,
    corrections: Corrections = DEFAULTS,
) -> PrefillRates:
    """Corrects prefill rows.

    Args:
        batch: Prompts of a pass on each rank.
        latency_ms: Raw times, positive.
        ranks: attention_dp * pp.
        encoder_ms: Raw times of the encoder inside the worker, 0 without one.
        corrections: Constants.
    """
    latency = corrections.prefill_latency * latency_ms + corrections.encoder_latency * encoder_ms
    return PrefillRates(
        latency_ms=latency,
        ttft_ms=corrections.disagg_ttft * latency,
        requests_per_s=1000.0 * batch * ranks / latency,
    )


def correct_decode(
    batch: npt.NDArray[np.int64],
    decode_total_ms: FloatArray,
    *,
    osl: int,
    ranks: int,
    corrections: Corrections = DEFAULTS,
) -> DecodeRates:
    """Corrects decode rows.

    Args:
        batch: Requests on each rank.
        decode_total_ms: Raw times of the ``osl - 1`` steps, positive unless osl is 1.
        osl: Output tokens, at least 1.
        ranks: attention_dp * pp.
        corrections: Constants.
    """
    if osl <= 1:
        return DecodeRates(tpot_ms=np.zeros_like(decode_total_ms), requests_per_s=np.full(batch.shape, np.inf))
    total = corrections.decode_latency * decode_total_ms
    return DecodeRates(tpot_ms=total / (osl - 1), requests_per_s=1000.0 * batch * ranks / total)


def agg_waiting_ms(
    slots: npt.NDArray[np.int64], requests_per_s: FloatArray, ttft_ms: FloatArray, tpot_ms: FloatArray, *, osl: int
) -> FloatArray:
    """Time that an aggregated request waits before its prompt is computed, which the core's estimate leaves out.

    With n requests in flight and X served per second each takes n / X (Little's law). The core's own latencies add up
    to that as long as prompts are computed as fast as they come (measured: a ratio of 1.000 on vLLM). With too small
    a pass for its batch they do not: X stays, the latencies pretend that nobody waits, and the difference is the wait.

    Args:
        slots: Requests in flight on the worker: batch times ranks.
        requests_per_s: Requests of the worker.
        ttft_ms: Time to first token of the core.
        tpot_ms: Time per output token of the core.
        osl: Output tokens, at least 1.

    Returns:
        Milliseconds to add to the time to first token, never negative.
    """
    return np.maximum(1000.0 * slots / requests_per_s - (ttft_ms + tpot_ms * (osl - 1)), 0.0)
