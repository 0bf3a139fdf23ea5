"""The examples, each searched once for all tests."""

from pathlib import Path

import pytest

from tests.examples.results import NAMES, Result, run_example


@pytest.fixture(scope="session")
def results(examples: Path, own_disk_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    folder = tmp_path_factory.mktemp("examples")
    return {name: run_example(examples / f"{name}.yaml", folder / name) for name in NAMES}
