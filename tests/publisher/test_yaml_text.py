import pytest
import yaml
from dgdr_publisher.yaml_text import yaml_text
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    "text", ["y", "N", "on", "Off", "yes", "null", "~", "None", "nan", "1.4", "1e3", "0x1", "1:30", ""]
)
def test_what_some_reader_takes_for_another_type_is_quoted(text: str) -> None:
    assert yaml_text({"key": text}) == f"key: '{text}'\n"


@pytest.mark.parametrize("text", ["--model", "Qwen/Qwen3-32B", "nvcr.io/a/b:1.4.0-x", "/opt/model-cache", "prefill"])
def test_what_every_reader_takes_for_a_text_is_plain(text: str) -> None:
    assert yaml_text({"key": text}) == f"key: {text}\n"


def test_block_style_in_the_order_given_and_no_aliases() -> None:
    part = {"b": 1, "a": [2]}
    assert yaml_text({"y": part, "x": part}) == "'y':\n  b: 1\n  a:\n  - 2\nx:\n  b: 1\n  a:\n  - 2\n"


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]))
    )
)
def test_every_text_is_read_back(document: dict[str, str]) -> None:
    assert yaml.safe_load(yaml_text(document)) == document
