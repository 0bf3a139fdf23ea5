"""A catalog over a cache of the test session's own."""

import pytest
from dgdr_job.catalog.cache import DiskCache
from dgdr_job.catalog.catalog import Catalog


@pytest.fixture(scope="session")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return Catalog(DiskCache(tmp_path_factory.mktemp("search")))
