import numpy as np
import pytest
from dgdr_job.timing.corrections import Corrections, correct_decode, correct_prefill


def test_the_defaults_are_the_peers() -> None:
    assert Corrections() == Corrections(
        prefill_latency=1.1,
        decode_latency=1.08,
        encoder_latency=1.0,
        prefill_rate=0.9,
        decode_rate=0.92,
        encoder_rate=0.9,
        disagg_ttft=1.8,
    )


def test_prefill_rates_count_every_rank() -> None:
    rates = correct_prefill(np.array([1, 2]), np.array([100.0, 150.0]), ranks=4)
    assert rates.latency_ms == pytest.approx([110.0, 165.0])
    assert rates.ttft_ms == pytest.approx([198.0, 297.0])
    assert rates.requests_per_s == pytest.approx([4000 / 110, 8000 / 165])


def test_decode_rates_are_over_the_steps_after_the_first_token() -> None:
    constants = Corrections(decode_latency=2.0)
    rates = correct_decode(np.array([1, 8]), np.array([50.0, 100.0]), osl=11, ranks=2, corrections=constants)
    assert rates.tpot_ms == pytest.approx([10.0, 20.0])
    assert rates.requests_per_s == pytest.approx([20.0, 80.0])


def test_one_output_token_decodes_for_free() -> None:
    rates = correct_decode(np.array([1, 8]), np.array([0.0, 0.0]), osl=1, ranks=2)
    assert rates.tpot_ms.tolist() == [0.0, 0.0]
    assert rates.requests_per_s.tolist() == [np.inf, np.inf]
