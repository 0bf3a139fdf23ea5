"""The table of `dgdr coverage`: one line a tuple, numbered notes below, and what a matrix expected."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgdr_api.events import TupleCoverage

    from dgdr_cli.matrix import Probe

COLUMNS = (
    ("model", False),
    ("GPU", False),
    ("tuple", False),
    ("data", False),
    ("verdict", False),
    ("silicon", True),
    ("note", True),
)
"""Name of each column, and whether it holds numbers."""


@dataclass(frozen=True)
class Row:
    """One tuple with its verdict."""

    model: str
    """As it was asked for; the name of a directory."""
    probe: "Probe"
    verdict: "TupleCoverage"

    @property
    def word(self) -> str:
        """``supported``, ``supported-except`` or ``unsupported``: what ``expected_here`` of a matrix says."""
        if not self.verdict.supported:
            return "unsupported"
        return "supported-except" if self.verdict.not_modelled else "supported"

    @property
    def as_expected(self) -> bool | None:
        """Whether the verdict is the expected one; None where nothing was expected."""
        return None if self.probe.expected is None else self.probe.expected == self.word

    @property
    def data(self) -> dict[str, Any]:
        """The row as data."""
        expected = {} if self.probe.expected is None else {"expected": self.probe.expected}
        told = {} if self.as_expected is None else {"asExpected": self.as_expected}
        dumped = self.verdict.model_dump(mode="json", by_alias=True)
        named = {} if self.probe.row is None else {"row": self.probe.row}
        return {**named, "model": self.probe.tuple.model, "verdict": self.word, **expected, **told, **dumped}

    @property
    def note(self) -> str:
        """Why it is not supported, or what its estimates leave out."""
        verdict = self.verdict
        where = f"{self.probe.tuple.model} on {next(iter(verdict.skus.values()))} with {verdict.backend} "
        text = verdict.message.removeprefix(f"{where}{verdict.data_version}, ").replace(
            self.probe.tuple.model, self.model
        )
        except_ = f"not modelled: {', '.join(_meaning(name) for name in verdict.not_modelled)}"
        surprise = f"expected {self.probe.expected}" if self.as_expected is False else ""
        return "; ".join(part for part in (surprise, except_ if verdict.not_modelled else "", text) if part)

    def cells(self, number: int | None) -> list[str]:
        """The cells of the columns; ``number`` is that of the note."""
        verdict = self.verdict
        return [
            self.model,
            " + ".join(dict.fromkeys(verdict.skus.values())),
            f"{verdict.backend}/{verdict.topology}",
            verdict.data_version or "",
            self.word if verdict.supported else verdict.reason,
            "" if verdict.shares is None else f"{verdict.shares.silicon:.0%}",
            "" if number is None else str(number),
        ]


def row_of(probe: "Probe", verdict: "TupleCoverage") -> Row:
    """A row; a directory is called by its last name."""
    model = probe.tuple.model
    return Row(Path(model).resolve().name if Path(model).is_dir() else model, probe, verdict)


def print_text(rows: Sequence[Row]) -> None:
    """Print the table, its notes, and how many are what."""
    from dgdr_cli.plain_text import plain
    from dgdr_cli.tables import console, print_table

    target = console()
    notes = _numbered(rows)
    print_table("Coverage", COLUMNS, [row.cells(notes.get(row.note)) for row in rows], target, dense=True)
    for text, number in notes.items():
        target.print(f"{number:>3}  {plain(text)}", soft_wrap=True, markup=False)
    target.print(f"\n{summary(rows)}", soft_wrap=True, markup=False)


def markdown(rows: Sequence[Row]) -> str:
    """The same as a table for a page, with row and budget, and its notes as a list."""
    notes = _numbered(rows)
    columns = (("row", True), *COLUMNS[:3], ("budget", True), *COLUMNS[3:])
    lines = [_line(name for name, _ in columns), _line("--:" if numeric else "---" for _, numeric in columns)]
    for row in rows:
        cells = row.cells(notes.get(row.note))
        lines.append(_line([row.probe.row or "", *cells[:3], str(row.probe.tuple.budget), *cells[3:]]))
    listed = [f"{number}. {text}" for text, number in notes.items()]
    return "\n".join([*lines, "", *listed, "", summary(rows), ""])


def summary(rows: Sequence[Row]) -> str:
    """How many tuples are what, and whether that is what was expected."""
    counts = {word: sum(row.word == word for row in rows) for word in ("supported", "supported-except", "unsupported")}
    text = f"{len(rows)} tuple{'' if len(rows) == 1 else 's'}: " + ", ".join(
        f"{n} {word}" for word, n in counts.items()
    )
    told = [row.as_expected for row in rows if row.as_expected is not None]
    if not told:
        return text
    return f"{text}; {'all as expected' if all(told) else f'{told.count(False)} other than expected'}"


def _numbered(rows: Iterable[Row]) -> dict[str, int]:
    """Each different note with its number, in the order of the rows."""
    texts = dict.fromkeys(row.note for row in rows if row.note)
    return {text: number for number, text in enumerate(texts, start=1)}


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _meaning(name: str) -> str:
    from dgdr_api.not_modelled import MEANINGS

    return next((f"{each}, the {text}" for each, text in MEANINGS.items() if each == name), name)
