"""What a docker build sees of a directory, and its hash: the same files give the same images.

The rules are those of ``.dockerignore``: in order, the last that matches decides, ``!`` takes a file back in, a rule
for a directory holds for all below it.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Rule:
    """One line of ``.dockerignore``."""

    pattern: str
    ignores: bool

    def matches(self, path: str) -> bool:
        """Whether the rule is about this path or a directory above it."""
        expression = re.sub(
            r"\\\*\\\*/|\\\*\\\*|\\\*|\\\?", lambda found: _WILDCARDS[found.group()], re.escape(self.pattern)
        )
        return re.fullmatch(rf"{expression}(/.*)?", path) is not None


_WILDCARDS = {r"\*\*/": "(.*/)?", r"\*\*": ".*", r"\*": "[^/]*", r"\?": "[^/]"}


def rules(text: str) -> list[Rule]:
    """Return the rules of the text of a ``.dockerignore``."""
    lines = [line.strip() for line in text.splitlines()]
    return [
        Rule(line.removeprefix("!").strip("/"), ignores=not line.startswith("!"))
        for line in lines
        if line and not line.startswith("#")
    ]


def is_ignored(path: str, given: Sequence[Rule]) -> bool:
    """Whether docker leaves a path out."""
    decisive = [rule.ignores for rule in given if rule.matches(path)]
    return bool(decisive) and decisive[-1]


def files(directory: Path) -> Iterator[Path]:
    """Yield the files that docker sends, in the order of their names, relative to the directory."""
    ignore = directory / ".dockerignore"
    given = rules(ignore.read_text("utf-8")) if ignore.exists() else []
    yield from _files(directory, Path(), given)


def _files(directory: Path, below: Path, given: Sequence[Rule]) -> Iterator[Path]:
    for entry in sorted(os.scandir(directory / below), key=lambda entry: entry.name):
        path = below / entry.name
        ignored = is_ignored(str(path), given)
        if entry.is_dir(follow_symlinks=False):
            if not ignored or any(_taken_back_below(path, rule) for rule in given):
                yield from _files(directory, path, given)
        elif not ignored:
            yield path


def _taken_back_below(path: Path, rule: Rule) -> bool:
    return not rule.ignores and (rule.pattern.startswith(f"{path}/") or "*" in rule.pattern)


def digest(directory: Path, *more: str) -> str:
    """Return a short hash of what docker sends, of the Dockerfile, and of further inputs."""
    whole = hashlib.sha256()
    for path in [Path("Dockerfile"), *files(directory)]:
        file = directory / path
        executable = os.access(file, os.X_OK)
        content = str(file.readlink()).encode() if file.is_symlink() else file.read_bytes()
        whole.update(f"{path}\0{executable}\0{hashlib.sha256(content).hexdigest()}\0".encode())
    whole.update("\0".join(more).encode())
    return whole.hexdigest()[:12]
