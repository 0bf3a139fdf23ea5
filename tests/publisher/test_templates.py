import json

import pytest
import yaml
from dgdr_api.versions import table, template_engines
from dgdr_publisher.errors import NotRenderableError
from dgdr_publisher.render.templates import ROOT, render_template, template_for, templates, yaml_scalar
from hypothesis import given
from hypothesis import strategies as st


def test_every_template_claims_versions_that_no_other_claims() -> None:
    claimed = [(one.backend, version) for one in templates() for version in one.engine_versions]
    assert sorted(claimed) == [("sglang", "0.5.14"), ("sglang", "0.5.16"), ("vllm", "0.26.0")]
    assert len(set(claimed)) == len(claimed)


def test_the_version_chain_knows_exactly_the_engines_that_the_templates_claim() -> None:
    claimed: dict[str, list[str]] = {}
    for one in templates():
        claimed.setdefault(one.backend, []).extend(one.engine_versions)
    known = {backend: sorted(versions) for backend, versions in table().templates.items()}
    assert known == {backend: sorted(versions) for backend, versions in claimed.items()}
    assert known == {"vllm": ["0.26.0"], "sglang": ["0.5.14", "0.5.16"]}


def test_every_runtime_that_carries_such_an_engine_is_one_of_its_template() -> None:
    for runtime, engines in table().runtimes.items():
        for backend, engine in engines.items():
            if engine in template_engines(backend):
                found = template_for(backend=backend, engine_version=engine, runtime_version=runtime)
                assert engine in found.engine_versions


def test_the_version_is_exact_and_the_refusal_names_those_that_exist() -> None:
    with pytest.raises(NotRenderableError, match=r"sglang has templates of the versions 0\.5\.14, 0\.5\.16"):
        template_for(backend="sglang", engine_version="0.5.15", runtime_version="1.4.0")
    with pytest.raises(NotRenderableError, match=r"knows the Dynamo versions 1\.4\.0, 1\.4\.1, 1\.4\.2"):
        template_for(backend="vllm", engine_version="0.26.0", runtime_version="1.5.0")


def test_the_renderer_names_its_template() -> None:
    found = template_for(backend="vllm", engine_version="0.26.0", runtime_version="1.4.1")
    assert found.renderer_version == "vllm-0.26.0/1"


def test_a_context_that_lacks_a_value_is_an_error_never_an_empty_text() -> None:
    template = template_for(backend="vllm", engine_version="0.26.0", runtime_version="1.4.1")
    with pytest.raises(NotRenderableError, match="UndefinedError: 'backend' is undefined"):
        render_template(template, {"dgd_name": "x", "components": []})


def test_every_value_passes_the_filter() -> None:
    """Whatever stands between braces ends in `| yaml`, or is a macro or an indentation of what did."""
    for folder in ("v1beta1", *(one.folder for one in templates())):
        for file in ROOT.joinpath(*folder.split("/")).iterdir():
            if file.name.endswith(".j2"):
                for expression in file.read_text(encoding="utf-8").split("{{")[1:]:
                    inner = expression.split("}}")[0].strip()
                    assert inner.endswith(("| yaml", "| indent(10)")), f"{folder}/{file.name}: {inner}"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text("abc \n'\"{}#:", max_size=5), inner),
        max_leaves=10,
    )
)
def test_yaml_reads_every_value_back(value: object) -> None:
    text = yaml_scalar(value)
    assert yaml.safe_load(f"key: {text}") == {"key": value}
    assert "\n" not in text


@pytest.mark.parametrize(
    "text", ["\\ud83d\\ude00", "\\\N{GRINNING FACE}", "\N{GRINNING FACE}", "\x7f", "\\x7f", "\x85"]
)
def test_yaml_reads_awkward_texts_back(text: str) -> None:
    assert yaml.safe_load(yaml_scalar(text)) == text
    assert json.dumps(text).isascii()
