"""What an error of the cluster means for what is to be published: try again, or give up."""

from collections.abc import Iterator
from contextlib import contextmanager

from dgdr_kube.errors import AlreadyExists, FieldConflict, KubeError, NotFound, Retryable, Stale

from dgdr_publisher.errors import BusyError, RefusedError


@contextmanager
def translated() -> Iterator[None]:
    """Turn an error of the client into this room's.

    What changed or went between reading and writing is read again; a field that another writer owns is a bug and is
    reported, as is everything that the API server will never take.

    Raises:
        BusyError: asking again may help.
        RefusedError: it will not.
    """
    try:
        yield
    except Retryable as error:
        raise BusyError(str(error), error.retry_after_s) from error
    except FieldConflict as error:
        raise RefusedError(f"another writer owns a field of ours: {error}") from error
    except (Stale, AlreadyExists, NotFound) as error:
        raise BusyError(str(error), conflict=True) from error
    except KubeError as error:
        raise RefusedError(str(error)) from error
