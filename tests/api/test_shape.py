import pytest
from dgdr_api.shape import Shape, total_gpus
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

degrees = st.sampled_from([1, 2, 4, 8])


@given(tp=degrees, pp=degrees, attention_dp=degrees, moe_tp=degrees, moe_ep=degrees, cp=degrees)
def test_finding_8273_experts_are_spread_over_exactly_the_workers_gpus(
    tp: int, pp: int, attention_dp: int, moe_tp: int, moe_ep: int, cp: int
) -> None:
    given_degrees = {"tp": tp, "pp": pp, "attention_dp": attention_dp, "moe_tp": moe_tp, "moe_ep": moe_ep, "cp": cp}
    if moe_tp * moe_ep not in (1, tp * attention_dp * cp):
        with pytest.raises(ValidationError, match="moeTp"):
            Shape(**given_degrees)
        return

    shape = Shape(**given_degrees)

    assert shape.gpus == tp * pp * attention_dp * cp
    assert Shape.model_validate(shape.model_dump()) == shape
    assert shape.key == (tp, pp, attention_dp, moe_tp, moe_ep, cp)


def test_finding_8576_8583_one_gpu_count() -> None:
    assert Shape(attention_dp=8, moe_ep=8).gpus == 8
    assert Shape(tp=1, attention_dp=8, moe_tp=2, moe_ep=4).gpus == 8
    assert total_gpus([(4, Shape(tp=2)), (2, Shape(attention_dp=8, moe_ep=8))]) == 24


def test_label() -> None:
    assert Shape().label == "tp1"
    assert Shape(attention_dp=8, moe_ep=8).label == "dp8-ep8"
