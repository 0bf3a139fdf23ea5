import json
import math
import re

import pytest
from dgdr_api.canonical import INT64_MAX, INT64_MIN, NotCanonicalError, canonical_json, sha256_hex
from hypothesis import given
from hypothesis import strategies as st

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(INT64_MIN, INT64_MAX)
    | st.floats(-1e15, 1e15, allow_nan=False)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values)
def test_reading_it_back_and_writing_again_gives_the_same_bytes(value: object) -> None:
    text = canonical_json(value)

    assert canonical_json(json.loads(text)) == text
    assert json.loads(text) == value


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), st.integers(INT64_MIN, INT64_MAX)))
def test_the_order_of_keys_does_not_matter(value: dict[str, int]) -> None:
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)


def test_numbers() -> None:
    assert canonical_json([1.0, -0.0, 0.1, 1e3, True, "ä"]) == '[1,0,0.1,1000,true,"ä"]'


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, 2**63, -(2**63) - 1, 1e300, b"x", {1: 2}, {3, 4}, "\ud800"]
)
def test_what_has_no_form_is_named_by_its_pointer(value: object) -> None:
    with pytest.raises(NotCanonicalError, match=r"^/a~1b/1: "):
        canonical_json({"a/b": [0, value]})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1e300, "1e+300 does not fit"),
        (2.0**63, "9.22337e+18 does not fit"),
        (2**63, "9223372036854775808 does not fit"),
        (10**300, "a number of 997 bits does not fit"),
    ],
)
def test_a_number_that_does_not_fit_is_said_in_few_digits(value: float, said: str) -> None:
    with pytest.raises(NotCanonicalError, match=re.escape(said)):
        canonical_json(value)
    assert canonical_json(-(2.0**63)) == str(INT64_MIN)


def test_hash() -> None:
    assert sha256_hex({}, 16) == "44136fa355b3678a"
    assert len(sha256_hex({})) == 64
