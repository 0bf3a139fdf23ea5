"""Reading a recorded workload: one JSON object a line, checked where it comes in.

Format mooncake: ``timestamp`` (milliseconds), ``input_length``, ``output_length`` and ``hash_ids``, one identity for
each block of the prompt; equal identities after equal ones mean equal content. The file may be gzipped; it is streamed.
"""

import gzip
import io
import json
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dgdr_job.replay.errors import InvalidTrace
from dgdr_job.replay.requests import Ints

LONGEST = 2**31 - 1
LATEST_MS = 1e12
GZIP_MAGIC = b"\x1f\x8b"
PROGRESS_LINES = 65_536

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Trace:
    """A recorded workload, in the order of its arrivals.

    Attributes:
        arrival_ns: nanoseconds after the first arrival, shape [n].
        isl, osl: tokens, shape [n].
        unit_start, units: identities of the prompt blocks, as in `Requests`.
    """

    arrival_ns: Ints
    isl: Ints
    osl: Ints
    unit_start: Ints
    units: Ints


def read_trace(path: Path, block_size: int, speedup: float = 1.0, progress: Progress | None = None) -> Trace:
    """Read a mooncake trace.

    Args:
        path: file, plain or gzipped.
        block_size: prompt tokens of one hash.
        speedup: arrivals come this many times as fast.
        progress: told the lines read so far, now and then.

    Raises:
        InvalidTrace: the file cannot be read, holds no request, or a line is wrong; with line, field and value.
    """
    times, isl, osl = array("d"), array("q"), array("q")
    starts, units = array("q", [0]), array("q")
    interned: dict[tuple[int, int], int] = {}
    for number, line in _lines(path):
        record = _record(path, number, line)
        times.append(_time(path, number, record))
        isl.append(_length(path, number, record, "input_length"))
        osl.append(_length(path, number, record, "output_length"))
        parent = -1
        for value in _hashes(path, number, record, isl[-1], block_size):
            parent = interned.setdefault((parent, value), len(interned))
            units.append(parent)
        starts.append(len(units))
        if progress is not None and number % PROGRESS_LINES == 0:
            progress(number)
    if not times:
        raise InvalidTrace(f"{path}: no request; expected one JSON object a line")
    lengths = np.array(isl, dtype=np.int64), np.array(osl, dtype=np.int64)
    identities = np.array(starts, dtype=np.int64), np.array(units, dtype=np.int64)
    return _in_order(np.array(times), lengths, identities, speedup)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers from 1."""
    try:
        with path.open("rb") as file:
            head = file.read(2)
            file.seek(0)
            stream: BinaryIO = io.BufferedReader(gzip.GzipFile(fileobj=file)) if head == GZIP_MAGIC else file
            for number, line in enumerate(stream, 1):
                text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if not text.isspace() and text:
                    yield number, text
    except (OSError, EOFError) as error:
        raise InvalidTrace(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidTrace(
            f"{path}, line {number}: not UTF-8 at byte {error.start}; save the trace as UTF-8"
        ) from error
    except (ValueError, RecursionError) as error:
        shown = line[:60].decode("utf-8", "replace").strip()
        raise InvalidTrace(
            f"{path}, line {number}: no JSON object ({str(error).splitlines()[0]}): {shown}; is the line complete?"
        ) from error
    if not isinstance(record, dict):
        raise InvalidTrace(f"{path}, line {number}: expected a JSON object, found {type(record).__name__}")
    return record


def _wrong(path: Path, number: int, name: str, value: object, expected: str) -> InvalidTrace:
    shown = "is missing" if value is None else f"= {str(value)[:60]}"
    return InvalidTrace(f"{path}, line {number}: {name} {shown}; expected {expected}")


def _time(path: Path, number: int, record: dict[str, Any]) -> float:
    value = record.get("timestamp")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST_MS:
        raise _wrong(path, number, "timestamp", value, f"milliseconds, 0 to {LATEST_MS:.0f}")
    return float(value)


def _length(path: Path, number: int, record: dict[str, Any], name: str) -> int:
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LONGEST:
        raise _wrong(path, number, name, value, f"a whole number, 1 to {LONGEST}")
    return value


def _hashes(path: Path, number: int, record: dict[str, Any], isl: int, block_size: int) -> list[int]:
    """Identities of the prompt's blocks; none when the line has none: a prompt of its own."""
    value = record.get("hash_ids")
    if value is None:
        return []
    if not isinstance(value, list) or not all(type(one) is int and abs(one) < 2**63 for one in value):
        raise _wrong(path, number, "hash_ids", value, "a list of whole numbers")
    needed = -(-isl // block_size)
    if len(value) != needed:
        raise InvalidTrace(
            f"{path}, line {number}: hash_ids has {len(value)} entries; input_length {isl} with a block size of "
            f"{block_size} needs {needed}"
        )
    return value


def _in_order(
    times: NDArray[np.float64], lengths: tuple[Ints, Ints], identities: tuple[Ints, Ints], speedup: float
) -> Trace:
    """Sort by time, keeping the order of equal times; the first arrival becomes 0."""
    isl, osl = lengths
    starts, units = identities
    arrival = np.round((times - times.min()) / speedup * 1e6).astype(np.int64)
    if np.all(arrival[1:] >= arrival[:-1]):
        return Trace(arrival, isl, osl, starts, units)
    order = np.argsort(arrival, kind="stable")
    counts = np.diff(starts)[order]
    ends = np.cumsum(counts)
    gather = np.arange(len(units)) - np.repeat(ends - counts, counts) + np.repeat(starts[:-1][order], counts)
    return Trace(arrival[order], isl[order], osl[order], np.concatenate([[0], ends]), units[gather])
