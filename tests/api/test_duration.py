import re

import pytest
from dgdr_api.duration import PATTERN, nanoseconds, seconds


@pytest.mark.parametrize(
    ("text", "length_s"),
    [("600s", 600), ("1h30m", 5400), ("1.5h", 5400), ("250ms", 0.25), ("0.1s0.2s", 0.3), ("1m1ms", 60.001)],
)
def test_length(text: str, length_s: float) -> None:
    assert seconds(text) == pytest.approx(length_s, rel=1e-12)


def test_fractions_of_a_nanosecond_are_cut_off_part_by_part() -> None:
    assert nanoseconds("0.0000001ms0.0000019ms") == 1


@pytest.mark.parametrize("text", ["1d", "P1D", "", "-1s", "1", "1 s", "s", "1S", ".5s"])
def test_what_is_no_duration(text: str) -> None:
    assert re.fullmatch(PATTERN, text) is None
