import pytest
from dgdr_api.images import can_swap, image_for, parse_tag, tag_of, with_component


@pytest.mark.parametrize(
    ("image", "tag"),
    [("a/b:1", "1"), ("host:5000/b", None), ("host:5000/b:1@sha256:x", "1"), ("b@sha256:x", None), ("b:", None)],
)
def test_tag(image: str, tag: str | None) -> None:
    assert tag_of(image) == tag


@pytest.mark.parametrize("tag", ["latest", "my-tag", "1.6", "1.3.0.post1", "01.2.3", "1.2.3-", "", "1.2.3\n"])
def test_what_is_no_semantic_version(tag: str) -> None:
    assert parse_tag(tag) is None


def test_only_the_core_counts_unless_the_runtime_itself_is_a_pre_release() -> None:
    assert parse_tag("V1.5.0-foo-dev.1+build.7") == ("1.5.0", None)
    assert parse_tag("1.3.0-dev.1-efa") == ("1.3.0", "1.3.0-dev.1")


def test_the_last_path_component_is_swapped() -> None:
    image = "host:5000/x/vllm-runtime:1.4.2-efa"

    assert image_for(image, "trtllm") == "host:5000/x/tensorrtllm-runtime:1.4.2-efa"
    assert image_for(image, "vllm") == image
    assert with_component(image, "dynamo-frontend") == "host:5000/x/dynamo-frontend:1.4.2-efa"


def test_an_image_of_another_name_or_by_digest_cannot_be_swapped() -> None:
    assert image_for("x/mine:1.4.2", "sglang") == "x/mine:1.4.2"
    assert not can_swap("x/mine:1.4.2")
    assert not can_swap("x/vllm-runtime:1.4.2@sha256:abc")
    assert can_swap("vllm-runtime:1.4.2")
