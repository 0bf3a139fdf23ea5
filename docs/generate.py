"""Generated documentation: docs/reasons.md from constants, docs/rbac.md from the chart, tables of README.md.

--check fails when a file is stale, --write writes it.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from dgdr_api import reasons

from docs.rbac import rbac_page

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CONDITIONS = (
    reasons.ACCEPTED,
    reasons.SUPPORTED,
    reasons.VERSION_BOUND,
    reasons.PUBLISHED,
    reasons.COMPLETED,
    reasons.EVALUATED,
    reasons.MATERIALIZED,
)
BEGIN, END = "<!-- benchmarks/results.md -->\n", "<!-- end -->\n"


def main() -> int:
    """Run the command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true")
    action.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    stale = [path for path, text in files() if path.read_text() != text] if not write else []
    if write:
        for path, text in files():
            path.write_text(text)
    for path in stale:
        sys.stderr.write(f"{path.relative_to(ROOT)} is stale: make crds\n")
    return 1 if stale else 0


def files() -> Iterator[tuple[Path, str]]:
    """Every generated file with its text."""
    yield ROOT / "docs" / "reasons.md", reasons_page()
    yield ROOT / "docs" / "rbac.md", rbac_page()
    results = ROOT / "benchmarks" / "results.md"
    text = README.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    yield README, before + BEGIN + results.read_text() + END + after


def reasons_page() -> str:
    """Every condition and reason with its meaning."""
    text = "# Conditions and reasons\n\nGenerated from `api/dgdr_api/reasons.py` by `make crds`.\n"
    for kind in CONDITIONS:
        text += f"\n## {kind}\n\n| status | reason | meaning |\n| --- | --- | --- |\n"
        text += "".join(f"| {each.status} | {each.name} | {each.meaning} |\n" for each in reasons.reasons_of(kind))
    return text


if __name__ == "__main__":
    sys.exit(main())
