"""The program `dgdr`: signals and standard streams first, then the command, then how it ends.

Nothing else is imported at the top: who interrupts while modules are loaded gets no trace either.
"""

import sys
from typing import Any

from dgdr_cli import program, signals, streams


def main() -> None:
    """Run the command line of this process, and end it."""
    _run()


def kubectl_main() -> None:
    """The same program as kubectl's plugin: it says `kubectl dgdr` where it speaks of itself."""
    program.call(program.KUBECTL_DGDR)
    _run()


def _run() -> None:
    code: Any = 0
    signals.listen()
    try:
        streams.open_standard()
        with signals.noticed():
            from dgdr_cli.app import app

            app(prog_name=program.called())
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        sys.stderr.write("dgdr: interrupted\n")
    signals.ignore()
    code = signals.exit_code(otherwise=code if isinstance(code, int) else int(code is not None))
    reason = streams.flush()
    if reason is not None and code == 0:
        from dgdr_cli.exit_codes import FAILED

        sys.stderr.write(f"dgdr: {reason}\n")
        code = FAILED
    sys.exit(code)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the form of a module's hook
    """``app``, for who calls it in a process of their own: without signals and streams."""
    if name != "app":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from dgdr_cli.app import app

    return app
