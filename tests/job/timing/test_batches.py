from dgdr_job.timing.batches import BATCH_GRID, max_batch
from hypothesis import given
from hypothesis import strategies as st


def test_the_grid_is_the_published_one() -> None:
    assert BATCH_GRID[:23] == (*range(1, 16), 16, 18, 20, 22, 24, 26, 28, 30)
    assert BATCH_GRID[23:25] == (32, 36)
    assert BATCH_GRID[46:49] == (124, 128, 136)
    assert BATCH_GRID[-2:] == (504, 512)
    assert len(BATCH_GRID) == 96
    assert list(BATCH_GRID) == sorted(set(BATCH_GRID))


def test_the_bound_includes_equality() -> None:
    assert max_batch(774_652, 3300) == 234
    assert max_batch(6600, 3300) == 2
    assert max_batch(6599, 3300) == 1
    assert max_batch(3299, 3300) == 0
    assert max_batch(-5, 3300) == 0


@given(st.integers(0, 10**7), st.integers(1, 10**5))
def test_the_most_fit_and_one_more_does_not(kv_tokens: int, length: int) -> None:
    most = max_batch(kv_tokens, length)
    assert most * length <= kv_tokens < (most + 1) * length
