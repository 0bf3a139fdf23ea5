import logging
import os
from itertools import pairwise

import pytest
import yaml
from dgdr_job.catalog.border import Reasons, border, refusal_for, without_paths
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.wheel import wheel_path


class DataError(RuntimeError):
    pass


REASONS: Reasons = {
    DataError: Reason.MISSING_OPERATOR_DATA,
    ValueError: Reason.NO_LEGAL_SHAPE,
    KeyError: Reason.UNKNOWN_MODEL,
}


def chained(*errors: BaseException) -> BaseException:
    """The errors, each raised from the next."""
    for outer, inner in pairwise(errors):
        outer.__cause__ = inner
    return errors[0]


def test_the_models_own_kind_decides_over_what_wraps_it_and_what_it_wraps() -> None:
    error = chained(ValueError("unsupported"), DataError("table gemm"), ValueError("native text"))
    refusal = refusal_for(error, "m", REASONS)
    assert refusal is not None
    assert (refusal.reason, refusal.message) == (Reason.MISSING_OPERATOR_DATA, "m: table gemm")


def test_without_a_kind_of_its_own_the_innermost_error_decides() -> None:
    refusal = refusal_for(chained(ValueError("unsupported"), KeyError("architectures")), "m", REASONS)
    assert refusal is not None
    assert refusal.reason == Reason.UNKNOWN_MODEL


def test_a_defect_that_the_model_wraps_passes_unchanged() -> None:
    error = chained(ValueError("unsupported"), TypeError("a defect"))
    with pytest.raises(ValueError, match="unsupported"), border("m", REASONS, []):
        raise error


def test_an_error_of_a_kind_that_is_not_listed_passes_unchanged() -> None:
    with pytest.raises(TypeError, match="a defect"), border("m", REASONS, []):
        raise TypeError("a defect")


def test_only_the_first_line_of_a_text_is_told() -> None:
    refusal = refusal_for(ValueError("first\nsecond"), "m", REASONS)
    assert refusal is not None
    assert refusal.message == "m: first"


def test_warnings_become_notes_once_and_reach_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    notes: list[str] = []
    log = logging.getLogger("aiconfigurator_core.sdk.perf_database")
    with border("m", {}, notes):
        log.warning("rows of %s/systems/data/x.parquet are borrowed\nand more", wheel_path())
        log.warning("rows of %s/systems/data/x.parquet are borrowed", wheel_path())
        log.info("loading")
    assert notes == ["rows of systems/data/x.parquet are borrowed"]
    assert caplog.records == []
    log.warning("outside")
    assert [record.message for record in caplog.records] == ["outside"]


def test_the_environment_cannot_change_answers_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("AIC_ALLOW_UNLISTED_VERSIONS", "AICONFIGURATOR_SYSTEMS_PATH", "HF_TOKEN"):
        monkeypatch.setenv(key, "mine")
    monkeypatch.setenv("HF_HOME", "elsewhere")
    loader = yaml.SafeLoader
    seen: dict[str, str] = {}

    def inside() -> None:
        with border("m", REASONS, []):
            seen.update(os.environ)
            os.environ["AICONFIGURATOR_MODEL_CONFIGS_PATH"] = "left behind"
            raise DataError("text")

    with pytest.raises(Unsupported):
        inside()
    assert not [key for key in seen if key.startswith(("AIC_", "AICONFIGURATOR_", "HF_TOKEN"))]
    assert seen["HF_HOME"] == "elsewhere"
    assert os.environ["AIC_ALLOW_UNLISTED_VERSIONS"] == "mine"
    assert os.environ["AICONFIGURATOR_SYSTEMS_PATH"] == "mine"
    assert os.environ["HF_TOKEN"] == "mine"  # noqa: S105
    assert "AICONFIGURATOR_MODEL_CONFIGS_PATH" not in os.environ
    assert yaml.SafeLoader is loader


def test_paths_outside_the_package_stay() -> None:
    assert without_paths("/models/mine/config.json") == "/models/mine/config.json"
