"""Errors of the contract.

::

    ContractError
    ├── InvalidRequest        a text is no valid request (parse.py)
    ├── UnknownSku            a GPU type is not in the catalog (skus.py)
    ├── VersionChainBroken    no way from the image to performance data or a template (versions.py)
    └── NameTooLong           no deployment name fits the limits of Kubernetes and Dynamo (identity.py)

``canonical.NotCanonicalError`` is a ``ValueError`` of its own: it also serves callers that know no contract.
"""

from collections.abc import Sequence
from dataclasses import dataclass


class ContractError(Exception):
    """Root of this room's errors; each says what was asked, what was found and what would do."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with an input."""

    field: str
    """Path in camelCase, e.g. spec.hardware.gpu.budget; empty for the whole text."""
    message: str
    """What is wrong, with the bound that was checked and what would do."""
    value: object = None
    """What was found."""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class InvalidRequest(ContractError):  # noqa: N818
    """A text is no valid request. ``problems`` lists everything that is wrong."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class UnknownSku(ContractError):  # noqa: N818
    """A GPU type is not in the catalog."""

    def __init__(self, asked: str, near: Sequence[str], known: Sequence[str]) -> None:
        self.asked = asked
        self.near = tuple(near)
        found = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
        super().__init__(f"GPU type {asked!r} is not known; {found}")


class VersionChainBroken(ContractError):  # noqa: N818
    """There is no way from the runtime image to performance data or a template. The message names every link."""

    def __init__(self, message: str, *, field: str, fix: str) -> None:
        self.field = field
        """Field of the spec that would mend the chain."""
        self.fix = fix
        """What to set, e.g. ``runtime.performanceDataVersion: {vllm: 0.24.0}``; empty when nothing would do."""
        super().__init__(message)


class NameTooLong(ContractError):  # noqa: N818
    """No deployment name fits the limits of Kubernetes and Dynamo."""
