"""Everything that the chart renders, byte for byte.

``DGDR_GOLDEN=write .venv/bin/python -m pytest tests/chart/test_golden.py`` writes the files anew.
"""

import os
from pathlib import Path

import pytest

from tests.chart.rendering import CASES, Helm

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", CASES)
def test_golden(chart: Helm, name: str) -> None:
    text = chart.text(values=CASES[name])
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("DGDR_GOLDEN") == "write":
        path.write_text(text)

    assert text == path.read_text()


def test_equal_values_give_equal_bytes(chart: Helm) -> None:
    assert chart.text(values=CASES["everything"]) == chart.text(values=CASES["everything"])
