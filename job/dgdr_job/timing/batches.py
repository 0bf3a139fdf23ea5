"""The batch sizes that a role is asked about."""

BATCH_GRID: tuple[int, ...] = (
    *range(1, 16),
    *range(16, 31, 2),
    *range(32, 125, 4),
    *range(128, 505, 8),
    512,
)
"""1-15 by 1, 16-30 by 2, 32-124 by 4, 128-504 by 8, 512: the decode schedule of aiconfigurator 0.12 (``sweep.py``)."""


def max_batch(kv_tokens: int, tokens_per_request: int) -> int:
    """Requests of one rank that the KV cache holds at their full length.

    Args:
        kv_tokens: KV tokens of one rank.
        tokens_per_request: Prompt, visual and output tokens of one request, at least 1.

    Returns:
        The largest b with ``b * tokens_per_request <= kv_tokens``, 0 when not even one fits.
    """
    return max(kv_tokens, 0) // tokens_per_request
