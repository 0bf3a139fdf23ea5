"""Whatever document is given, the reader answers with differences and never fails."""

import copy
from collections.abc import Iterator
from typing import Any

from dgdr_publisher.rendering import render_candidate, verify_dgd
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.publisher.cases import CASES

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*path, key))


RENDERED = {name: render_candidate(*case, "qwen").dgd for name, case in CASES.items()}


@given(st.data())
@settings(deadline=None, max_examples=400)
def test_a_deployment_with_anything_anywhere_is_answered(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(CASES)))
    dgd = copy.deepcopy(RENDERED[name])
    *path, last = data.draw(st.sampled_from(list(paths(dgd))))
    place: Any = dgd
    for step in path:
        place = place[step]
    place[last] = data.draw(JSON)
    candidate, request = CASES[name]
    for difference in (*verify_dgd(dgd, candidate, request), *verify_dgd(dgd, candidate)):
        assert str(difference)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_any_other_document_is_answered(document: dict[str, Any]) -> None:
    candidate, request = CASES["vllm_agg_tp2"]
    assert verify_dgd(document, candidate, request)
