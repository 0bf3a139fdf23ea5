"""Helm on our chart, and what the operator's tests have to start operators on the API server."""

from pathlib import Path

import pytest

from tests.chart.rendering import Helm
from tests.operator.conftest import install, start_operator

__all__ = ["install", "start_operator"]


@pytest.fixture(scope="session")
def chart(helm: Path) -> Helm:
    """The chart, rendered by the pinned helm."""
    return Helm(helm)
