"""Exact matching alone at growing budgets: 26,010 pairs of rows, and each of them beside 8 encode choices.

Time of the best counts, memory of it, and growth.

Each budget runs in a process of its own, so that its peak memory is its own. Times are processor time, the least of
five: what else the machine does does not count.

    python -m benchmarks.matching            # prints the table
    python -m benchmarks.matching --write    # and writes benchmarks/matching.md
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from dgdr_job.matching.arrays import Goal, Prices
from dgdr_job.matching.match import best_deployments
from dgdr_job.matching.tuples import Pool, Tuples
from dgdr_job.space.limits import Limits

ROOT = Path(__file__).parent
BUDGETS = (8, 16, 32, 64, 72, 128, 256, 512)
PREFILL_ROWS, DECODE_ROWS = 102, 255
ENCODE_GPUS = (1, 1, 2, 2, 4, 4, 8, 8)
RUNS = 5
BAR = 40
"""Characters of the longest bar."""


class Case(NamedTuple):
    """What is matched: at which prices, and the least budget as a share of the budget, none for 1."""

    goal: Goal
    prices: Prices
    share: int
    encode: bool = False


CASES: dict[str, Case] = {
    "per GPU": Case("rate_per_gpu", Prices(), 1),
    "per cost": Case("rate_per_cost", Prices(2.5, 3.5), 1),
    "per GPU, at least half the budget": Case("rate_per_gpu", Prices(), 2),
    "with encode workers, per GPU": Case("rate_per_gpu", Prices(), 1, encode=True),
    "with encode workers, per cost, at least half the budget": Case(
        "rate_per_cost", Prices(2.5, 3.5, 1.5), 2, encode=True
    ),
}


def pairs() -> Tuples:
    """Rows as a search has them: rates of 0.5 to 40 requests per second on 1 to 16 GPUs."""
    random = np.random.default_rng(7)
    prefill_gpus = random.choice([1, 2, 4, 8, 16], PREFILL_ROWS)
    decode_gpus = random.choice([1, 2, 4, 8, 16], DECODE_ROWS)
    prefill_rate = random.uniform(0.5, 4.0, PREFILL_ROWS) * prefill_gpus**0.8
    decode_rate = random.uniform(1.0, 10.0, DECODE_ROWS) * decode_gpus**0.9
    p, d = (grid.ravel() for grid in np.meshgrid(np.arange(PREFILL_ROWS), np.arange(DECODE_ROWS), indexing="ij"))
    return Tuples(
        (
            Pool("prefill", prefill_rate[p], prefill_gpus[p].astype(np.int64)),
            Pool("decode", decode_rate[d], decode_gpus[d].astype(np.int64), np.ones(len(p), dtype=np.int64)),
        ),
        offered_rate=np.full(len(p), np.inf),
        needed_rate=np.zeros(len(p)),
    )


def triples() -> Tuples:
    """Each pair beside each encode choice: rates of 4 to 50 requests per second on 1 to 8 GPUs."""
    some, choices = pairs(), len(ENCODE_GPUS)
    every = some.take(np.repeat(np.arange(len(some)), choices))
    gpus = np.tile(np.array(ENCODE_GPUS, dtype=np.int64), len(some))
    rate = np.random.default_rng(8).uniform(4.0, 9.0, choices) * np.array(ENCODE_GPUS) ** 0.8
    encode = Pool("encode", np.tile(rate, len(some)), gpus)
    return Tuples((*every.pools, encode), every.offered_rate, every.needed_rate)


def measure(budget: int, name: str) -> dict[str, float]:
    """Seconds of the best counts of all tuples at one budget, and peak memory of the process in MB."""
    case = CASES[name]
    some = triples() if case.encode else pairs()
    limits = Limits(gpu_budget=budget, min_gpu_budget=1 if case.share == 1 else budget // case.share)
    seconds = []
    for _ in range(RUNS):
        started = time.process_time()
        found = best_deployments(some, limits, case.goal, case.prices)
        seconds.append(time.process_time() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": min(seconds), "mb": peak, "found": len(found), "tuples": len(some)}


def measured_apart(budget: int, name: str) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.matching", "--one", str(budget), name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT.parent)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def table() -> str:
    """One row per budget and goal, with a bar as long as the time."""
    text = ""
    for name, case in CASES.items():
        results = {budget: measured_apart(budget, name) for budget in BUDGETS}
        longest = max(result["seconds"] for result in results.values())
        text += f"{name}, {int(results[BUDGETS[0]]['tuples']):,} {'triples' if case.encode else 'pairs'} of rows\n\n"
        text += "| budget, GPUs | with a deployment | CPU seconds | µs each | peak memory, MB | |\n"
        text += "| --- | --- | --- | --- | --- | --- |\n"
        for budget, result in results.items():
            bar = "█" * max(round(BAR * result["seconds"] / longest), 1)
            each = 1e6 * result["seconds"] / result["tuples"]
            text += f"| {budget} | {int(result['found']):,} | {result['seconds']:.3f} | {each:.2f} | "
            text += f"{result['mb']:.0f} | {bar} |\n"
        text += "\n"
    return text


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write benchmarks/matching.md")
    parser.add_argument("--one", nargs=2, metavar=("BUDGET", "GOAL"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        sys.stdout.write(json.dumps(measure(int(asked.one[0]), asked.one[1])))
        return
    text = table()
    sys.stdout.write(text)
    if asked.write:
        head = f"`python -m benchmarks.matching --write`: processor time, least of {RUNS} runs, one core.\n\n"
        (ROOT / "matching.md").write_text(head + text.rstrip("\n") + "\n")


if __name__ == "__main__":
    main()
