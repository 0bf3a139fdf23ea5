"""Writes docs/coverage.md: the validation matrix as `dgdr coverage --matrix` judges it. Run by `make coverage`.

Apart from docs.generate, since it asks the performance model: half a second of CPU a tuple where nothing is cached.
"""

from pathlib import Path

from dgdr_cli.main import app
from typer.testing import CliRunner

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "coverage.md"
MATRIX = ROOT / "tests" / "data" / "matrix" / "rows.csv"
HEAD = """\
# Coverage

What of 29 deployment recipes (45 tuples of model, GPU type, backend and topology) the performance data covers, as
`dgdr coverage --matrix tests/data/matrix/rows.csv -o markdown` prints it; written by `make coverage`, and compared by
a test. One real prefill pass and one real decode step are estimated for each role, on its smallest shape with room for
the longest request.

- **supported**: with the version of the data, and the share of the time that was measured on the GPU itself.
- **supported-except**: it runs, and is estimated without the features that the note names. A candidate that uses one
  says `Evaluated=True/PartiallyModelled`. A worker that spans nodes is one by itself: the interconnect between the
  nodes is not modelled.
- A reason: what is missing, and what would do. All reasons stand in [reasons.md](reasons.md), under Supported.

The two models without an organisation are folders with a `config.json`, rebuilt from the geometry of shipped models and
the number formats that their names say. A folder of your own works as well: `--model DIR`. Nothing is ever downloaded.
A `config.json` that names Python code of its own (`auto_map`) is judged all the same, and the note says that a request
must trust it by `modelRef.remoteCode`.

Whether a template renders the result is another question: no template renders TensorRT-LLM yet.

"""


def coverage_page() -> str:
    """The page, judged now."""
    ended = CliRunner().invoke(app, ["coverage", "--matrix", str(MATRIX), "-o", "markdown"])
    if ended.exit_code:
        raise RuntimeError(ended.output)
    return HEAD + ended.stdout


if __name__ == "__main__":
    PAGE.write_text(coverage_page())
