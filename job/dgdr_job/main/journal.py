"""The numbered events of one attempt, on the workspace before they are sent: any of them can be sent again."""

import json
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

COMPLETED, FAILED = "search.completed", "search.failed"


class Journal:
    """A file of lines ``{seq, attempt, runUid, time, type, data}``; line n is event n.

    One thread appends, another takes batches. What an earlier process of the same attempt wrote is continued; a line
    without its end is cut off, since it was never sent.

    Args:
        path: the file.
        attempt: uid of the pod.
        run_uid: uid of the run; None: it is not known yet, and appending waits for it.
        now: the time: UTC, RFC 3339, ending in Z.
    """

    def __init__(self, path: Path, *, attempt: str, run_uid: str | None, now: Callable[[], str]) -> None:
        self._attempt, self._run_uid, self._now = attempt, run_uid, now
        self._changed = threading.Condition()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab+")
        self._ends = [0]
        self._last_type = ""
        self._stopped = False
        self._load()

    @property
    def run_uid(self) -> str | None:
        """Uid of the run."""
        return self._run_uid

    @run_uid.setter
    def run_uid(self, uid: str) -> None:
        with self._changed:
            self._run_uid = uid
            self._changed.notify_all()

    @property
    def last_seq(self) -> int:
        """The number of the last event."""
        return len(self._ends) - 1

    @property
    def end(self) -> str | None:
        """Type of the terminal event, once there is one."""
        return self._last_type if self._last_type in {COMPLETED, FAILED} else None

    def append(self, kind: str, data: bytes) -> None:
        """Number and date an event; see ``extend``."""
        self.extend([(kind, data)])

    def extend(self, events: Sequence[tuple[str, bytes]]) -> None:
        """Number and date events; after the call they survive a crash. The disk is waited for once.

        Args:
            events: type, and data as JSON in one line, of each.

        Raises:
            OSError: the workspace does not take them.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._run_uid is not None)
            lines = [self._line(seq, *event) for seq, event in enumerate(events, start=self.last_seq + 1)]
            self._file.write(b"".join(lines))
            self._file.flush()
            os.fsync(self._file.fileno())
            for line, (kind, _) in zip(lines, events, strict=True):
                self._ends.append(self._ends[-1] + len(line))
                self._last_type = kind
            self._changed.notify_all()

    def _line(self, seq: int, kind: str, data: bytes) -> bytes:
        envelope = {
            "seq": seq,
            "attempt": self._attempt,
            "runUid": self._run_uid,
            "time": self._now(),
            "type": kind,
        }
        head = json.dumps(envelope, separators=(",", ":")).encode()
        return head[:-1] + b',"data":' + data + b"}\n"

    def stop(self) -> None:
        """Nothing more will be appended."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def batch(self, after: int, max_bytes: int) -> bytes | None:
        """The events after number ``after``, as many as fit, at least one; waits until there is one.

        Returns:
            Lines; None when ``after`` is the last event there will be.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.last_seq > after or self._stopped or self.end is not None)
            if self.last_seq <= after:
                return None
            start, last = self._ends[after], after + 1
            while last < self.last_seq and self._ends[last + 1] - start <= max_bytes:
                last += 1
            length = self._ends[last] - start
        return os.pread(self._file.fileno(), length, start)

    def close(self) -> None:
        """Close the file; what was appended is on the disk already."""
        with self._changed:
            self._file.close()

    def _load(self) -> None:
        self._file.seek(0)
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            self._ends.append(self._ends[-1] + len(line))
            self._last_type = str(json.loads(line)["type"])
        self._file.truncate(self._ends[-1])
        self._file.seek(0, os.SEEK_END)
