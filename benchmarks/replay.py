"""Replays beside Dynamo 1.6.1's own (Rust), on the same work in one run.

Both are warm processes of their own; the replay call is timed, reading of the trace included, the least of the runs
counts. What a process takes before its first replay stands in a row of its own.

    python -m benchmarks.replay --trace mooncake.jsonl            # prints the table
    python -m benchmarks.replay --trace mooncake.jsonl --write    # and writes benchmarks/replay.md
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.replay_peer import Peer

ROOT = Path(__file__).parent
RUNS, PEER_RUNS = 7, 3
LIMITS = {"num_gpu_blocks": 16384, "block_size": 64, "max_num_seqs": 256, "max_num_batched_tokens": 8192}
MIB = 1024
SAME = 1e-6
"""How far apart two mean latencies may be to be called equal, relative: half a nanosecond in the last digit."""


@dataclass(frozen=True)
class Work:
    """One replay in both languages."""

    name: str
    aim: int
    spec: dict[str, Any]
    peer: dict[str, Any]


def works(trace: Path | None) -> list[Work]:
    """The replays of the table; those of a trace only where there is one."""
    found = [
        Work(
            "one worker, 10,000 of 3000/300, 64 in flight",
            100,
            _spec([_role("agg", 1)], static={"isl": 3000, "osl": 300, "concurrency": 64, "requests": 10_000}),
            {
                "synthetic": {"isl": 3000, "osl": 300, "requests": 10_000},
                "options": {"extra_engine_args": _engine("aggregated"), "num_workers": 1, "replay_concurrency": 64},
            },
        ),
        Work(
            "2 prefill + 4 decode, 4,000 of 3000/300, 256 in flight",
            50,
            _spec(
                [_role("prefill", 2), _role("decode", 4)],
                static={"isl": 3000, "osl": 300, "concurrency": 256, "requests": 4000},
            ),
            {
                "synthetic": {"isl": 3000, "osl": 300, "requests": 4000},
                "options": {
                    "prefill_engine_args": _engine("prefill"),
                    "decode_engine_args": _engine("decode"),
                    "num_prefill_workers": 2,
                    "num_decode_workers": 4,
                    "replay_concurrency": 256,
                },
            },
        ),
    ]
    if trace is not None:
        found.append(
            Work(
                "Mooncake conversation trace, 8 workers, round robin",
                20,
                _spec([_role("agg", 8)], trace={"path": str(trace.resolve()), "format": "mooncake", "blockSize": 512}),
                {
                    "trace_path": str(trace.resolve()),
                    "trace_block_size": 512,
                    "options": {
                        "extra_engine_args": _engine("aggregated"),
                        "num_workers": 8,
                        "capture_per_request": False,
                    },
                },
            )
        )
    return found


def main() -> None:
    """Run the command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, help="a Mooncake trace")
    parser.add_argument("--write", action="store_true", help="write benchmarks/replay.md")
    parser.add_argument("--one", help="for the script itself: replay this document and say how long it took")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(_measured(Path(arguments.one))))
        return
    text = table(works(arguments.trace))
    print(text)
    if arguments.write:
        (ROOT / "replay.md").write_text(text)


def table(chosen: list[Work]) -> str:
    """Both sides of every work as a table."""
    lines = [
        "# Replay beside Dynamo 1.6.1",
        "",
        (
            f"`python -m benchmarks.replay --trace FILE --write`: {platform.machine()}, "
            f"Python {platform.python_version()}, one core each, CPU seconds, least of {RUNS} and {PEER_RUNS} runs. "
            "Mean TTFT says that the work is the same."
        ),
        "",
        (
            "| replay | ours, s | peer, s | peer / ours | aim | ours: MiB after import, at the peak | peer, MiB | "
            "mean TTFT, ms: ours, peer |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    starts = []
    for work in chosen:
        ours, peer = _ours(work), _peers(work)
        starts.append(f"import {ours['import_s']:.2f} s, first replay {ours['first_s']:.2f} s")
        equal = "" if abs(ours["ttft_ms"] - peer["ttft_ms"]) <= SAME * peer["ttft_ms"] else " (not equal)"
        lines.append(
            f"| {work.name} | {ours['cpu_s']:.4f} | {peer['cpu_s']:.2f} | {peer['cpu_s'] / ours['cpu_s']:.1f} | "
            f"≥ {work.aim} | {ours['imported_kib'] / MIB:.0f}, {ours['peak_kib'] / MIB:.0f} | "
            f"{peer['peak_kib'] / MIB:.0f} | {ours['ttft_ms']:.6f}, {peer['ttft_ms']:.6f}{equal} |"
        )
    lines += ["", "Before that, in a process whose compiled code is kept: " + "; ".join(starts) + ".", ""]
    return "\n".join(lines)


def _ours(work: Work) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "spec.json")
        path.write_text(json.dumps(work.spec))
        command = [sys.executable, "-m", "benchmarks.replay", "--one", str(path)]
        subprocess.run(command, check=True, capture_output=True)  # compiles what is not kept yet
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _measured(path: Path) -> dict[str, Any]:
    import resource  # noqa: PLC0415 - what is imported is measured
    import time  # noqa: PLC0415 - as above

    def kib() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    started = time.process_time()
    from dgdr_api.replay_spec import ReplaySpec  # noqa: PLC0415 - as above
    from dgdr_job.replay.kernel import run  # noqa: F401, PLC0415 - as above
    from dgdr_job.replay.replaying import replay_spec  # noqa: PLC0415 - as above

    import_s, imported_kib = time.process_time() - started, kib()
    spec = ReplaySpec.model_validate_json(path.read_text())
    taken = []
    for _ in range(RUNS + 1):
        started = time.process_time()
        _, _, outcome = replay_spec(spec, path.parent)
        taken.append(time.process_time() - started)
    ttft = (outcome.first_token_ns - outcome.arrival_ns)[outcome.first_token_ns >= 0]
    return {
        "import_s": import_s,
        "imported_kib": imported_kib,
        "first_s": taken[0],
        "cpu_s": min(taken[1:]),
        "peak_kib": kib(),
        "ttft_ms": float(ttft.mean()) / 1e6,
    }


def _peers(work: Work) -> dict[str, Any]:
    peer = Peer()
    found = [peer.replay(work.peer) for _ in range(PEER_RUNS)]
    peer.close()
    for one in found:
        if "error" in one:
            raise SystemExit(f"the peer does not replay {work.name}: {one['error']}")
    return {
        "cpu_s": min(one["cpu_s"] for one in found),
        "peak_kib": max(one["peak_kib"] for one in found),
        "ttft_ms": float(found[0]["summary"]["mean_ttft_ms"]),
    }


def _engine(kind: str) -> dict[str, Any]:
    return {"backend": "vllm", "worker_type": kind, **LIMITS}


def _role(kind: str, workers: int) -> dict[str, Any]:
    formats = {"gemm": "bfloat16", "moe": "bfloat16", "kv": "bfloat16", "attention": "bfloat16"}
    return {
        "kind": kind,
        "workers": workers,
        "gpusPerWorker": 1,
        "backend": "vllm",
        "sku": "h200_sxm",
        "engineVersion": "1.0.0",
        "dataVersion": "1.0.0",
        "shape": {"tp": 1, "pp": 1, "attentionDp": 1, "moeTp": 1, "moeEp": 1, "cp": 1},
        "quantization": formats | {"communication": "half"},
        "memoryFraction": 0.9,
        "engine": {
            "maxNumSeqs": LIMITS["max_num_seqs"],
            "maxNumBatchedTokens": LIMITS["max_num_batched_tokens"],
            "blockSize": LIMITS["block_size"],
            "numGpuBlocks": LIMITS["num_gpu_blocks"],
            "maxSequenceLength": 1 << 20,
            "enablePrefixCaching": True,
        },
        "timing": {"type": "polynomial"},
    }


def _spec(roles: list[dict[str, Any]], **workload: dict[str, Any]) -> dict[str, Any]:
    topology = "agg" if len(roles) == 1 else "disagg"
    return {"topology": topology, "roles": roles, "workload": workload}


if __name__ == "__main__":
    main()
