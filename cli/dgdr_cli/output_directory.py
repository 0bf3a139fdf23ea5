"""The directory of a search's results: one search at a time writes there, nothing is replaced unless asked."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from dgdr_cli.documents import read_mapping
from dgdr_cli.exit_codes import WRONG_INPUT
from dgdr_cli.exits import fail

if TYPE_CHECKING:
    from dgdr_cli.requests import Admitted

LOCK = ".dgdr.lock"
_NOT_THE_USERS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE)
"""Errors that say nothing against the directory that was named."""
_SHOWN = 4
"""Names of a directory's content that fit a line."""


@contextmanager
def reserved(out: Path, asked: "Admitted", *, resume: bool, force: bool) -> Iterator[None]:
    """A directory that takes the results of this search and of no other, or exit 2.

    Args:
        out: the directory; it may be absent.
        asked: the request that is about to be searched.
        resume: go on where the directory holds results of the same request.
        force: replace results of an earlier search.
    """
    if resume and force:
        fail(WRONG_INPUT, "--resume keeps to the request of the results, --force replaces them; give one of the two")
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = _locked(out)
    except OSError as error:
        _refuse(out, error)
    try:
        try:
            _check(out, asked, resume=resume, force=force)
        except OSError as error:
            _refuse(out, error)
        yield
    finally:
        (out / LOCK).unlink(missing_ok=True)
        os.close(lock)


def _locked(out: Path) -> int:
    """The open lock file. The kernel frees the lock when its process dies; a file that was left is taken over."""
    path = out / LOCK
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _stands_at(path, handle):
                return handle
        except BlockingIOError:
            os.close(handle)
            fail(WRONG_INPUT, f"--out {out}: another search writes there; wait for its end or name another directory")
        except OSError:
            os.close(handle)
            raise
        os.close(handle)


def _stands_at(path: Path, handle: int) -> bool:
    """Whether the locked file is still the one of that name: its former owner removes it when it ends."""
    try:
        return path.stat().st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False


def _refuse(out: Path, error: OSError) -> NoReturn:
    if error.errno in _NOT_THE_USERS:
        raise error
    if error.errno == errno.EEXIST and out.is_symlink():
        fail(WRONG_INPUT, f"--out {out}: is a symbolic link that leads nowhere; name a directory")
    if error.errno == errno.EEXIST:
        fail(WRONG_INPUT, f"--out {out}: is no directory; name one")
    where = "" if error.filename is None or Path(error.filename) == out else f"{error.filename}: "
    fail(WRONG_INPUT, f"--out {out}: {where}{error.strerror}; name a directory that can be written")


def _check(out: Path, asked: "Admitted", *, resume: bool, force: bool) -> None:
    from dgdr_publisher.directory import CANDIDATES, RESULTS, is_left_over

    candidates = out / CANDIDATES
    if candidates.is_symlink() or (candidates.exists() and not candidates.is_dir()):
        fail(WRONG_INPUT, f"--out {out}: {candidates} is no directory of its own; remove it or name another directory")
    for name in RESULTS:
        if (out / name).is_dir() and not (out / name).is_symlink():
            fail(WRONG_INPUT, f"--out {out}: {out / name} is a directory; remove it or name another directory")
    content = sorted(entry.name for entry in out.iterdir() if entry.name != LOCK and not is_left_over(entry))
    if not content or force:
        return
    if resume:
        _check_same_request(out, asked)
        return
    shown = ", ".join(content[:_SHOWN]) + (", …" if len(content) > _SHOWN else "")
    fail(
        WRONG_INPUT,
        f"--out {out}: is not empty ({shown}); name another directory, or add --force to replace the results of an "
        "earlier search, or --resume to go on with the same request",
    )


def _check_same_request(out: Path, asked: "Admitted") -> None:
    from dgdr_api.group import ANNOTATION_INPUT_HASH
    from dgdr_api.identity import input_hash

    path = out / "run.yaml"
    if not path.exists():
        fail(WRONG_INPUT, f"--resume: {path} is missing; {out} holds no search to go on with")
    metadata = read_mapping(path).get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    found = annotations.get(ANNOTATION_INPUT_HASH) if isinstance(annotations, dict) else None
    if found is None:
        fail(
            WRONG_INPUT,
            f"--resume: {path} is not what a search writes: metadata.annotations has no {ANNOTATION_INPUT_HASH}; "
            "name another directory, or --force to replace it",
        )
    wanted = input_hash(asked.spec)
    if found != wanted:
        fail(
            WRONG_INPUT,
            f"--resume: {path} is of another request (input hash {found}, this one has {wanted}); "
            "name another directory, or --force to replace it",
        )
