"""What all tests share: the control plane fixtures, and a disk cache of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest_plugins = ["tests.controlplane.fixture", "tests.controlplane.node.fixture"]

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session", autouse=True)
def own_disk_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tests start cold once and never see or touch the cache of the person who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("disk-cache")
        patch.setenv("DGDR_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="session")
def examples() -> Path:
    """The folder of the examples."""
    return ROOT / "examples"
