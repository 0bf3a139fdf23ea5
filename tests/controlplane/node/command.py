"""Run a program of the machine to its end; its last lines are in the error."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.controlplane.node.errors import CommandError

_ERROR_LINES = 25


def run(
    *command: str | Path,
    input: str | bytes | None = None,  # noqa: A002 - the name that subprocess.run has for it
    environ: Mapping[str, str] | None = None,
    timeout_s: float = 120.0,
) -> str:
    """Run a program and return its standard output.

    Args:
        command: program and arguments.
        input: standard input.
        environ: variables beside those of this process.
        timeout_s: seconds after which it is killed.

    Raises:
        CommandError: it is missing, its status is not 0, or the time is over.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            input=input.encode() if isinstance(input, str) else input or b"",
            capture_output=True,
            check=False,
            timeout=timeout_s,
            env={**os.environ, **(environ or {})},
        )
    except FileNotFoundError as error:
        raise CommandError(f"`{_shown(words)}`: there is no such program") from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"`{_shown(words)}` did not end within {timeout_s:g} s") from error
    out = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        said = (out + done.stderr.decode("utf-8", "replace")).splitlines()[-_ERROR_LINES:]
        raise CommandError("\n".join([f"`{_shown(words)}` ended with status {done.returncode}:", *said]))
    return out


def _shown(words: Sequence[str]) -> str:
    return " ".join(words)
