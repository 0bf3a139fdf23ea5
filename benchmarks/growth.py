"""How time grows with the budget, from 8 to 512 GPUs: whole searches with a full cache, and the matching alone.

A whole search is a process of its own, its CPU seconds the least of the runs. The matching alone is that of
`benchmarks.matching`: 26,010 pairs of rows, the best counts of each. What it goes through are the worker counts at
which one role is just saturated, and time is to be linear in these at most. Written to benchmarks/growth.md and
benchmarks/growth.svg; takes about five minutes.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from dgdr_job.matching.match import break_points
from dgdr_job.space.limits import Limits

from benchmarks.line_chart import Line, line_chart
from benchmarks.matching import BUDGETS, CASES, measured_apart, pairs
from benchmarks.process import Runs
from benchmarks.run import say, search
from benchmarks.works import WORKS, Work

HERE = Path(__file__).parent
SEARCHED = ("qwen3-32b", "qwen3-235b")
CASE = next(iter(CASES))


@dataclass(frozen=True)
class Matching:
    """The matching alone at one budget."""

    counts: int
    """Worker counts that it goes through, of all pairs."""
    seconds: float


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each search (default 3)")
    given = parser.parse_args()
    works = [work for work in WORKS if work.name in SEARCHED]
    with tempfile.TemporaryDirectory() as name:
        searched = {work.title.rpartition(", ")[0]: cpu_seconds(work, Path(name), given.runs) for work in works}
    some = pairs()
    matching = {
        budget: Matching(break_points(some, Limits(gpu_budget=budget)), measured_apart(budget, CASE)["seconds"])
        for budget in BUDGETS
    }
    text = page(searched, matching, given.runs)
    sys.stdout.write(text)
    (HERE / "growth.md").write_text(text)
    (HERE / "growth.svg").write_text(picture(searched, matching))


def cpu_seconds(work: Work, folder: Path, runs: int) -> dict[int, float]:
    """CPU seconds of a whole search at each budget, with a full cache."""
    found = {}
    folder = folder / work.name
    folder.mkdir()
    document = yaml.safe_load(work.request.read_text())
    for budget in BUDGETS:
        document["spec"]["hardware"]["gpu"]["budget"] = budget
        request = folder / f"{budget}.yaml"
        request.write_text(yaml.safe_dump(document))
        say(f"{work.name}, {budget} GPUs")
        search(request, folder, f"{budget}-cold", cache=folder / "cache")
        warm = [search(request, folder, f"{budget}-{run}", cache=folder / "cache") for run in range(runs)]
        found[budget] = Runs(tuple(warm)).cpu_s
    return found


def page(searched: Mapping[str, Mapping[int, float]], matching: Mapping[int, Matching], runs: int) -> str:
    """The table with the picture."""
    text = (
        "# Growth with the budget\n\n"
        f"`python -m benchmarks.growth`: one core. Searches: whole processes with a full cache, CPU seconds, least of "
        f"{runs} runs. Matching alone: the best worker counts of 26,010 pairs of rows.\n\n"
        "![CPU seconds by budget](growth.svg)\n\n"
        f"| budget, GPUs | {' | '.join(f'{title}, s' for title in searched)} | matching alone, s | worker counts | "
        "ns a count |\n"
        f"| --- | {'--- | ' * len(searched)}--- | --- | --- |\n"
    )
    for budget, found in matching.items():
        times = " | ".join(f"{of[budget]:.2f}" for of in searched.values())
        each = 1e9 * found.seconds / found.counts
        text += f"| {budget} | {times} | {found.seconds:.3f} | {found.counts:,} | {each:.0f} |\n"
    return text


def picture(searched: Mapping[str, Mapping[int, float]], matching: Mapping[int, Matching]) -> str:
    """The same as lines over a linear axis: what grows linearly is straight."""
    lines: Sequence[Line] = (
        *(Line(title, tuple(of), tuple(of.values())) for title, of in searched.items()),
        Line("matching alone, 26,010 pairs", tuple(matching), tuple(each.seconds for each in matching.values())),
    )
    return line_chart(lines, x_title="budget, GPUs", y_title="CPU seconds")


if __name__ == "__main__":
    main()
