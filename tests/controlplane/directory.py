"""A temporary directory that does not stay behind, also when the run that made it was killed.

The owner holds a file lock inside, which the kernel frees when the owner dies, however it dies. A directory whose lock
is free is thus abandoned, and the next run removes it: no pid is guessed, no age is waited for.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCK = "owner.lock"


@contextmanager
def scratch_directory(prefix: str) -> Iterator[Path]:
    """Make a temporary directory and remove it at the end; first remove what killed runs left under this prefix."""
    remove_abandoned(prefix)
    directory = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        with (directory / "new.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (directory / "new.lock").rename(directory / _LOCK)  # it bears this name only once it is held
            yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def remove_abandoned(prefix: str) -> None:
    """Remove the directories under this prefix whose owner is dead."""
    for directory in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if _is_abandoned(directory):
            shutil.rmtree(directory, ignore_errors=True)


def _is_abandoned(directory: Path) -> bool:
    try:
        lock = os.open(directory / _LOCK, os.O_RDONLY)
    except OSError:  # just being made, or another user's
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(lock)
