"""Standard output and errors that may be closed, or lose their reader, at any moment: writing then goes nowhere.

So ``dgdr … | head -1`` works to its end and has the exit code that it earned.
"""

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_NAMES = ("standard input", "standard output", "standard error")


class _File(io.FileIO):
    """A file that takes everything once its reader, or its terminal, has gone."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._terminal = self.isatty()

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno == errno.EPIPE or (error.errno == errno.EIO and self._terminal):
                return memoryview(data).nbytes
            error.filename = _NAMES[self.fileno()]
            raise


def open_standard() -> None:
    """Put such files in place of ``sys.stdout`` and ``sys.stderr``; a descriptor that is closed reads and writes none.

    Otherwise the first file that is opened would get the number of the closed one, and the texts meant for it.
    """
    for descriptor in range(len(_NAMES)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - a descriptor, for the whole run
    # names of files that are no text are printed as they are
    sys.stdout = _text(1, sys.stdout, errors="surrogateescape", by_line=False)
    sys.stderr = _text(2, sys.stderr, errors="backslashreplace", by_line=True)


def flush() -> str | None:
    """Write what is left of both. Returns what standard output could not take, and why."""
    reason = None
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)  # Python flushes once more when it ends
            if descriptor == 1:
                reason = f"{error.filename}: {error.strerror}"
    return reason


def _text(descriptor: int, replaced: TextIO | None, *, errors: str, by_line: bool) -> io.TextIOWrapper:
    file = _File(descriptor)
    return io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding="utf-8" if replaced is None else replaced.encoding,
        errors=errors,
        line_buffering=by_line or file.isatty(),
    )
