"""How many deployments a set of shapes makes within the limits. A pair is (shape, workers), or two of them."""

from collections.abc import Iterable

from dgdr_api.shape import Shape

from dgdr_job.space.limits import Limits


def agg_counts(shape: Shape, limits: Limits) -> range:
    """The worker counts of an aggregated deployment of this shape within the limits."""
    least = -(-limits.min_gpu_budget // shape.gpus)
    return range(max(least, 1), limits.gpu_budget // shape.gpus + 1)


def disagg_count(prefill: Shape, decode: Shape, limits: Limits) -> int:
    """How many (prefill workers, decode workers) of these two shapes are within the limits."""
    count = 0
    for p in range(1, limits.most_workers("prefill", prefill.gpus, decode.gpus) + 1):
        most = limits.most_workers("decode", decode.gpus, p * prefill.gpus)
        least = max(-(-(limits.min_gpu_budget - p * prefill.gpus) // decode.gpus), 1)
        count += max(most - least + 1, 0)
    return count


def most_decode_workers(prefill: Shape, decode: Shape, limits: Limits) -> int:
    """The most decode workers of any deployment of these two shapes within the limits; 0 where there is none."""
    for count in range(limits.most_workers("decode", decode.gpus, prefill.gpus), 0, -1):
        lacking = limits.min_gpu_budget - count * decode.gpus
        if max(-(-lacking // prefill.gpus), 1) <= limits.most_workers("prefill", prefill.gpus, count * decode.gpus):
            return count
    return 0


def agg_pairs(shapes: Iterable[Shape], limits: Limits) -> int:
    """Aggregated deployments, knobs aside."""
    return sum(len(agg_counts(shape, limits)) for shape in shapes)


def disagg_pairs(prefill: Iterable[Shape], decode: Iterable[Shape], limits: Limits) -> int:
    """Disaggregated deployments, knobs aside."""
    decode = tuple(decode)
    return sum(disagg_count(p, d, limits) for p in prefill for d in decode)
