"""Reads the arguments of ``dynamo.frontend`` (1.3 and 1.4), written after their argument definitions."""

import argparse
from collections.abc import Sequence

from dgdr_publisher.verify.arguments import CommandLine

MODULE = "dynamo.frontend"


def read_frontend(arguments: Sequence[str]) -> argparse.Namespace:
    """The options router_mode, model_name, model_path and trust_remote_code.

    Raises:
        ArgumentsError: a command line that the frontend refuses.
    """
    line = CommandLine(MODULE)
    line.value("--router-mode", choices=["round-robin", "kv"], required=True)
    line.value("--model-name")
    line.value("--model-path")
    line.switch("--trust-remote-code")
    return line.read(arguments)
