"""What the engine knows of models, hardware and times, opened for one command."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dgdr_job.catalog.catalog import Catalog

    from dgdr_cli.requests import Admitted


@contextmanager
def opened_catalog(asked: "Admitted | None" = None) -> "Iterator[Catalog]":
    """The catalog with this user's disk cache; what the cache has to say is told on stderr at the end.

    Args:
        asked: the request of a search, whose model is read where it is not shipped.
    """
    from dgdr_job.catalog.catalog import Catalog

    found = Catalog()
    if asked is not None and asked.inputs is not None:
        found.take_model(asked.spec.model_ref, asked.inputs)
    try:
        yield found
    finally:
        sys.stderr.write("".join(f"dgdr: note: {note}\n" for note in found.cache.notes))
