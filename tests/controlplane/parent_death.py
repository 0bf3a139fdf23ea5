"""Become another program that the kernel kills when the process that started it dies (Linux).

Run as a script, ``parent_death.py PARENT_PID PROGRAM ARGUMENTS...``, between a start and the program: the process id
stays the same. The alternative, ``preexec_fn``, runs Python between fork and exec, which can deadlock with threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask for the signal, then replace this process by the program."""
    parent, program = int(sys.argv[1]), sys.argv[2]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent died before the kernel was asked, so no signal would ever come")
    os.execv(program, sys.argv[2:])  # noqa: S606 - a shell is what must not be here


if __name__ == "__main__":
    main()
