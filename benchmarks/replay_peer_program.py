"""Runs inside the peer's environment: reads cases, replays them with Dynamo 1.6.1, writes results."""

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

SYNTHETIC_NAMES = ("isl", "osl", "requests")


def main() -> None:
    """Answer every line of standard input with one line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from dynamo.mocker.config import normalize_mocker_config  # noqa: PLC0415
    from dynamo.replay import run_synthetic_trace_replay, run_trace_replay  # noqa: PLC0415

    folder = tempfile.mkdtemp()
    path = Path(folder, "trace.jsonl")
    for line in sys.stdin:
        case = json.loads(line)
        options = dict(case["options"])
        try:
            for name in [name for name in options if name.endswith("engine_args")]:
                arguments = dict(options[name])
                outer = {key: arguments.pop(key) for key in ("dp_size",) if key in arguments}
                options[name] = normalize_mocker_config({**outer, "engine": arguments})
            if "trace" in case:
                with path.open("w") as file:
                    file.writelines(json.dumps(request) + "\n" for request in case["trace"])
            wall, cpu = time.perf_counter(), time.process_time()
            if "synthetic" in case:
                lengths = [case["synthetic"][name] for name in SYNTHETIC_NAMES]
                report = run_synthetic_trace_replay(*lengths, **options)
            else:
                options.setdefault("capture_per_request", True)
                size = case["trace_block_size"]
                report = run_trace_replay(case.get("trace_path", str(path)), trace_block_size=size, **options)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            summary = report if isinstance(report, dict) else report.summary
            rows = [] if isinstance(report, dict) else report.per_request or []
            result = {"summary": summary, "per_request": rows, "wall_s": wall, "cpu_s": cpu}
            result["peak_kib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        except BaseException as error:  # noqa: BLE001 - whatever the peer raises is its answer
            result = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(result, default=str) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
