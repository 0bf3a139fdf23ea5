import pytest
from aiconfigurator_core.sdk.backends.base_backend import BaseBackend
from aiconfigurator_core.sdk.config import RuntimeConfig
from dgdr_job.catalog.aic import read_model
from dgdr_job.catalog.images import Images, VisionFacts, image_problem, image_tokens
from hypothesis import given
from hypothesis import strategies as st

QWEN_VL = VisionFacts(patch_size=16, merge_size=2, heads=16, intermediate_size=4304, layers=27)
SMALL = "Qwen/Qwen3-VL-2B-Instruct"


@pytest.mark.parametrize(
    ("height", "width", "count", "tokens"),
    [
        (448, 448, 1, 196),
        (500, 500, 1, 256),
        (896, 896, 1, 784),
        (896, 896, 3, 3 * 784),
        (1, 1, 1, 1),
        (15, 448, 1, 14),
        (48, 32, 1, 2),
        (80, 32, 1, 2),
        (112, 32, 1, 4),
        (1024, 768, 2, 2 * 32 * 24),
    ],
)
def test_sides_round_half_to_even_multiples_of_the_stride(height: int, width: int, count: int, tokens: int) -> None:
    assert image_tokens(Images(height, width, count), QWEN_VL) == tokens
    assert image_tokens(Images(width, height, count), QWEN_VL) == tokens


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 9), st.integers(1, 9000))
def test_tokens_are_those_of_the_performance_model(height: int, width: int, count: int, isl: int) -> None:
    runtime = RuntimeConfig(isl=isl, image_height=height, image_width=width, num_images_per_request=count)
    expected = BaseBackend.effective_prefill_isl(SMALL, runtime) - isl
    vision = read_model(SMALL).vision
    assert vision is not None
    assert image_tokens(Images(height, width, count), vision) == expected


@pytest.mark.parametrize(("height", "width"), [(200, 1), (1, 200), (1024, 768)])
def test_an_aspect_ratio_up_to_200_is_taken(height: int, width: int) -> None:
    assert image_problem(Images(height, width)) is None


@pytest.mark.parametrize(("height", "width"), [(201, 1), (1, 201), (65_536, 32)])
def test_a_longer_image_is_refused_with_its_ratio(height: int, width: int) -> None:
    problem = image_problem(Images(height, width))
    assert problem is not None
    assert f"{height:,} x {width:,}" in problem
    assert "at most 200" in problem


def test_labels() -> None:
    assert Images(448, 500).label == "1 image of 448 x 500"
    assert Images(448, 500, 2).label == "2 images of 448 x 500"
