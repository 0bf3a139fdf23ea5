"""Command lines read as the programs read them: argparse, each option once, unknown options refused."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn


class ArgumentsError(ValueError):
    """A command line that the program would refuse, or that says one thing twice."""


class CommandLine(argparse.ArgumentParser):
    """An argparse parser that knows a closed list of options and raises instead of ending the process."""

    def __init__(self, program: str) -> None:
        super().__init__(prog=program, add_help=False, allow_abbrev=False)

    def value(
        self, *names: str, kind: type = str, choices: Sequence[str] | None = None, required: bool = False
    ) -> None:
        """An option with one value, given as the next item."""
        self.add_argument(*names, type=kind, choices=choices, required=required, action=_Once)

    def switch(self, *names: str) -> None:
        """An option without a value."""
        self.add_argument(*names, nargs=0, default=False, action=_OnceTrue)

    def pair(self, name: str) -> None:
        """A boolean that is given one way or the other: ``--name`` or ``--no-name``; the two exclude each other."""
        destination = name.lstrip("-").replace("-", "_")
        group = self.add_mutually_exclusive_group(required=True)
        group.add_argument(name, dest=destination, nargs=0, action=_OnceTrue)
        group.add_argument(f"--no-{name.lstrip('-')}", dest=destination, nargs=0, action=_OnceFalse)

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The options of a command line.

        Raises:
            ArgumentsError: an option that is unknown, missing, given twice, joined with ``=`` (the operator does not
                see it), or a value that is empty, ``None`` or of the wrong kind.
        """
        for item in arguments:
            if not isinstance(item, str):
                raise ArgumentsError(f"{self.prog}: {item!r} is no string")
            if item.startswith("--") and "=" in item:
                raise ArgumentsError(f"{self.prog}: {item} joins an option and its value")
            if item in ("", "None"):
                raise ArgumentsError(f"{self.prog}: {item!r} is no value")
        return self.parse_args(list(arguments))

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print."""
        raise ArgumentsError(f"{self.prog}: {message}")


class _Once(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option_string: Any = None) -> None:  # noqa: ANN401
        self._set(parser, namespace, values, option_string)

    def _set(self, parser: argparse.ArgumentParser, namespace: Any, value: Any, option_string: Any) -> None:  # noqa: ANN401
        given: set[str] = namespace.__dict__.setdefault("_given", set())
        if self.dest in given:
            parser.error(f"{option_string} is given twice")
        given.add(self.dest)
        setattr(namespace, self.dest, value)


class _OnceTrue(_Once):
    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option_string: Any = None) -> None:  # noqa: ANN401, ARG002
        self._set(parser, namespace, value=True, option_string=option_string)


class _OnceFalse(_Once):
    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option_string: Any = None) -> None:  # noqa: ANN401, ARG002
        self._set(parser, namespace, value=False, option_string=option_string)
