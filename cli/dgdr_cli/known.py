"""What the engine knows of models, hardware and times, opened for one command."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dgdr_job.catalog.catalog import Catalog


@contextmanager
def opened_catalog() -> "Iterator[Catalog]":
    """The catalog with this user's disk cache; what the cache has to say is told on stderr at the end."""
    from dgdr_job.catalog.catalog import Catalog

    found = Catalog()
    try:
        yield found
    finally:
        sys.stderr.write("".join(f"dgdr: note: {note}\n" for note in found.cache.notes))
