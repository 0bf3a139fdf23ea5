"""The events that were taken, on the workspace: what a restarted publisher knows again before it answers anything."""

import os
from collections.abc import Iterable, Iterator
from io import RawIOBase
from pathlib import Path
from typing import BinaryIO

from dgdr_api.events import Event
from pydantic import TypeAdapter, ValidationError

from dgdr_publisher.errors import StoreError

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)
_BLOCK = 65_536


class Journal:
    """One event a line. What ``append`` returned from survives a crash of the container.

    A crash in the middle of a write leaves a line without its end; it was never acknowledged and is cut off when the
    journal is opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab+") as file:
                _cut_torn_line(file)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror or error}") from error

    def append(self, lines: Iterable[bytes]) -> None:
        """Write whole lines and wait until they are on the disk.

        Raises:
            StoreError: the workspace does not take them; none of them counts as written.
        """
        try:
            with self._path.open("ab", buffering=0) as file:
                size = file.seek(0, os.SEEK_END)
                try:
                    _write(file, b"".join(line.rstrip(b"\r\n") + b"\n" for line in lines))
                except OSError:
                    file.truncate(size)
                    raise
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror or error}") from error

    def append_event(self, event: Event) -> None:
        """Write one event."""
        self.append([event.model_dump_json(by_alias=True, exclude_none=True).encode()])

    def events(self) -> Iterator[Event]:
        """The events, in order.

        Raises:
            StoreError: the journal cannot be read, or a line in it is no event.
        """
        try:
            with self._path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    yield self._event(number, line)
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror or error}") from error

    def _event(self, number: int, line: bytes) -> Event:
        try:
            return _EVENT.validate_json(line)
        except ValidationError as error:
            raise StoreError(f"{self._path}:{number}: {error.errors()[0]['msg']}") from error


def _write(file: RawIOBase, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[file.write(left) or 0 :]
    os.fsync(file.fileno())


def _cut_torn_line(file: BinaryIO) -> None:
    size = end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - _BLOCK)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        end = start if found < 0 else start + found + 1
        if found >= 0:
            break
    if end != size:
        file.truncate(end)
        os.fsync(file.fileno())
