"""Draws docs/demo.svg: what a search prints, from a real run of examples/qwen3-32b.yaml."""

import io
import re
import tempfile
from pathlib import Path

from dgdr_cli.requests import admitted
from dgdr_cli.search import search_into
from dgdr_cli.summary import print_summary
from rich.console import Console
from rich.terminal_theme import MONOKAI

ROOT = Path(__file__).parent.parent
WIDTH = 150


def main() -> None:
    """Search, print into a recording console, write the picture."""
    console = Console(record=True, width=WIDTH, highlight=False, file=io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        _, publisher = search_into(admitted(ROOT / "examples" / "qwen3-32b.yaml"), Path(folder))
        print_summary(publisher, Path("out"), console)
    picture = console.export_svg(title="make demo", theme=MONOKAI)
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)  # no font is fetched from anywhere
    (ROOT / "docs" / "demo.svg").write_text(picture)


if __name__ == "__main__":
    main()
