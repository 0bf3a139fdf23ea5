"""Signals that end a command become one exception in the main thread, so that what is known can still be written.

This module is loaded before all others and imports next to nothing: a signal may come at any moment.
"""

import signal
import sys
import time
from types import FrameType, TracebackType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_S = 2.0
"""A signal that comes this soon after the first belongs to the same wish; a later one ends the writing too."""
_AGAIN_S = 0.001
_TICK_S = 0.5


class Stopped(KeyboardInterrupt):
    """A signal ended the command. Like the keyboard's, no handler of errors takes it for one."""

    def __init__(self, number: int) -> None:
        self.number = signal.Signals(number)
        super().__init__(self.number.name)


class _Listener:
    """What came and when."""

    def __init__(self) -> None:
        self.first: Stopped | None = None
        self._first_at = 0.0
        self._lost = False

    def stop(self, number: int, _: FrameType | None) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first, self._first_at = Stopped(number), now
            signal.setitimer(signal.ITIMER_REAL, 0)  # no tick into what is written at the end
        elif now - self._first_at < PATIENCE_S:
            return
        raise Stopped(self.first.number)

    def alarm(self, *_: object) -> None:
        """A tick does nothing: it is handled together with the signal that it brings to notice, and comes second."""
        if self._lost and self.first is not None:
            self._lost = False
            raise Stopped(self.first.number)

    def not_raised(self, lost: "sys.UnraisableHookArgs") -> None:
        """Python drops an exception that comes up in a destructor or a callback of its own: this one comes again."""
        if isinstance(lost.exc_value, Stopped):
            self._lost = True
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            sys.__unraisablehook__(lost)


_listener = _Listener()


class noticed:  # noqa: N801 - reads as a word in a with statement
    """An error after a signal is the signal: C code, such as an extension's set-up, makes one of the exception."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and _listener.first is not None:
            raise Stopped(_listener.first.number) from error


class ticking:  # noqa: N801 - the same
    """Notice a signal within half a second while other code waits, for a connection say.

    One that comes in the moment before the wait begins does not end it, and Python acts on it only afterwards: that may
    be a minute. A tick ends every wait for as long as it takes to look.
    """

    def __enter__(self) -> None:
        if signal.getsignal(signal.SIGALRM) == _listener.alarm:  # else a tick would end the process
            signal.setitimer(signal.ITIMER_REAL, _TICK_S, _TICK_S)

    def __exit__(self, *_: object) -> None:
        if _listener.first is None:
            signal.setitimer(signal.ITIMER_REAL, 0)


def listen() -> None:
    """Raise `Stopped` when a signal asks this process to end. One that the caller ignores (nohup) stays ignored."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _listener.stop)
    signal.signal(signal.SIGALRM, _listener.alarm)
    sys.unraisablehook = _listener.not_raised


def ignore() -> None:
    """From here on the command ends anyway, with the exit code that it has."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def exit_code(otherwise: int) -> int:
    """128 and the number of the signal that came first, as a shell reports it; else the code given."""
    return otherwise if _listener.first is None else 128 + _listener.first.number
