"""Keeps the engine running: starts it, journals what it says, starts it again when it dies without a word."""

import fcntl
import json
import logging
import os
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from io import BufferedReader
from typing import IO

from dgdr_job.main.journal import FAILED, Journal

MAX_RESTARTS = 3
CRASHED = "EngineCrashed"
_LAST_WORDS, _MAX_MESSAGE = 3, 500
_PIPE_BYTES = 1024 * 1024

_log = logging.getLogger(__name__)
_engine_log = logging.getLogger("engine")


class Supervisor:
    """Runs the engine as a child until a terminal event is in the journal.

    A child that ends without one, by a signal or for lack of memory, is started again; the search then begins again,
    and its events go on being numbered. A failure that the engine reports itself is final.

    Args:
        command: the engine; ``--events-fd N`` is added.
        journal: takes the events.
    """

    def __init__(self, command: Sequence[str], journal: Journal) -> None:
        self._command, self._journal = list(command), journal
        self._child: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._words: deque[str] = deque(maxlen=_LAST_WORDS)
        self._counters: object = {}
        self.error: OSError | None = None
        """Why nothing could be journalled, or no child started."""

    def run(self) -> None:
        """Run to the terminal event, or until stopped."""
        try:
            self._run()
        except OSError as error:
            self.error = error
        finally:
            self._journal.stop()

    def stop(self) -> None:
        """Kill the engine; nothing more is journalled."""
        with self._lock:
            self._stopped = True
            if self._child is not None:
                self._child.kill()

    def _run(self) -> None:
        for restarts in range(MAX_RESTARTS + 1):
            code = self._once()
            if self._journal.end is not None or self._stopped:
                return
            _log.warning(
                "the engine ended with %d and without a terminal event, %d restarts left", code, MAX_RESTARTS - restarts
            )
        cause = f"signal {-code}" if code < 0 else f"exit code {code}"
        words = "; ".join(self._words)
        message = f"the engine died {MAX_RESTARTS + 1} times, the last time by {cause}{f': {words}' if words else ''}"
        data = {"reason": CRASHED, "message": message[:_MAX_MESSAGE], "counters": self._counters}
        self._journal.append(FAILED, json.dumps(data).encode())

    def _once(self) -> int:
        """Run one child to its end and journal what it says."""
        read, write = os.pipe()
        with suppress(OSError):  # less room than asked for is only slower
            fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        with os.fdopen(read, "rb") as events:
            with self._lock:
                if self._stopped:
                    os.close(write)
                    return 0
                try:
                    self._child = child = subprocess.Popen(  # noqa: S603 - our own engine
                        [*self._command, "--events-fd", str(write)],
                        pass_fds=(write,),
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                    )
                finally:
                    os.close(write)
            started = time.monotonic()
            _log.info("the engine runs as pid %d", child.pid)
            words = threading.Thread(target=self._listen, args=(child.stdout,), daemon=True)
            words.start()
            self._journal_all(events)
        code = child.wait()
        words.join()
        _log.info("the engine ended with %d after %.2f s", code, time.monotonic() - started)
        return code

    def _journal_all(self, events: BufferedReader) -> None:
        """Journal what the engine says, all that is there at once, so that it seldom waits for the disk."""
        rest = b""
        while (found := events.read1(_PIPE_BYTES)) and not self._stopped:
            *lines, rest = (rest + found).split(b"\n")  # a line without its end waits for it
            if lines:
                self._take(lines)

    def _take(self, lines: Sequence[bytes]) -> None:
        said = []
        for line in lines:
            kind, _, data = line.partition(b" ")
            if kind == b"round.completed":
                self._counters = json.loads(data)["counters"]
            said.append((kind.decode(), data))
        self._journal.extend(said)

    def _listen(self, words: IO[bytes]) -> None:
        with words, suppress(ValueError):
            for line in words:
                text = line.decode(errors="replace").rstrip()
                self._words.append(text)
                _engine_log.info("%s", text)
