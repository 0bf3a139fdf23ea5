"""Listed engine limits."""

from dgdr_job.space.knobs import RoleKnobs

KNOBS = RoleKnobs((8192, 16384, 32768), (256, 512), (64,), (True, False), (None,))


def test_combinations_are_the_product_of_the_lists() -> None:
    assert KNOBS.combinations == 3 * 2 * 1 * 2 * 1


def test_the_least_listed_budget_that_covers_a_pass() -> None:
    assert [KNOBS.batched_tokens_for(tokens) for tokens in (1, 8192, 8193, 32768, 32769)] == [
        8192,
        8192,
        16384,
        32768,
        None,
    ]
