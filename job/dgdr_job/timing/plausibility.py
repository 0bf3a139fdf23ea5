"""Is a decode step as fast as physics allows, and not absurdly slower?"""

from dataclasses import dataclass

SLOWEST_ROOFLINE_RATIO = 20.0
"""Slower than this multiple of the roofline is suspect."""

LAUNCH_MS_PER_LAYER = 0.25
"""A layer never needs more than this for launching kernels: below it a slow step is a small model, not bad data.

Estimates of aiconfigurator-core 0.12.0 at batch 1: the data known to be bad (vLLM 0.24.0 fp8_block on GB200) takes 1.1
to 2.5 ms a layer, at 39 times its roofline and more. Sound data of small models and of experts on 8 and 16 GPUs lies at
20 to 210 times its roofline with 0.05 to 0.2 ms a layer.
"""


SLOWEST_ENCODER_RATIO = 9.0
"""An encoder pass slower than this multiple of its roofline is suspect, if launching kernels does not explain it.

Estimates of aiconfigurator-core 0.12.0 for one image: sound data lies at 1.5 to 8.2 times the roofline, the data known
to be bad (SGLang 0.5.14 on B300 and GB300) at 10 times with 1024 x 1024 pixels and at 30 with 2048 x 2048.
"""


@dataclass(frozen=True)
class EncoderPlausibility:
    """The encoder's pass over the images of one request on one GPU, beside the least that it can take.

    Attributes:
        pass_ms: Estimated time.
        roofline_ms: By peak arithmetic and memory bandwidth, a lower bound.
        is_implausible: Faster than the roofline, or slower than 9 times of it and than launching kernels explains.
    """

    pass_ms: float
    roofline_ms: float
    is_implausible: bool


def encoder_plausibility(pass_ms: float, *, roofline_ms: float, layers: int) -> EncoderPlausibility:
    """Judges one pass of an encoder.

    Args:
        pass_ms: Estimated time, positive.
        roofline_ms: The least that the same operators can take.
        layers: Layers of the encoder.
    """
    too_slow = pass_ms > SLOWEST_ENCODER_RATIO * roofline_ms and pass_ms > LAUNCH_MS_PER_LAYER * layers
    return EncoderPlausibility(pass_ms, roofline_ms, pass_ms < roofline_ms or too_slow)


@dataclass(frozen=True)
class Plausibility:
    """A decode step of one request beside the time that reading the weights takes.

    Attributes:
        decode_step_ms: Estimated time of the step.
        roofline_ms: Weights read by the step over memory bandwidth: a lower bound.
        is_implausible: Faster than the roofline, or slower than 20 times of it and than launching kernels explains.
    """

    decode_step_ms: float
    roofline_ms: float
    is_implausible: bool


def plausibility(
    decode_step_ms: float, *, weights_bytes: float, memory_bytes_per_s: float, layers: int
) -> Plausibility:
    """Judges one decode step.

    Args:
        decode_step_ms: Estimated time of the step, positive.
        weights_bytes: Weights of one GPU that the step must read, over all pipeline stages.
        memory_bytes_per_s: Memory bandwidth of one GPU.
        layers: Layers of the model.
    """
    roofline_ms = 1000.0 * weights_bytes / memory_bytes_per_s
    too_slow = decode_step_ms > SLOWEST_ROOFLINE_RATIO * roofline_ms and decode_step_ms > LAUNCH_MS_PER_LAYER * layers
    return Plausibility(decode_step_ms, roofline_ms, decode_step_ms < roofline_ms or too_slow)
