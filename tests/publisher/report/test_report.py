"""The report in shards: bounded, thinned with a seed, read back, the same bytes for the same points."""

import base64
import gzip
import io
import json
import random
import re
from typing import Any

import dgdr_publisher.points
import pyarrow.parquet as pq
import pytest
from dgdr_api.events import Evaluations
from dgdr_publisher.errors import ReportError
from dgdr_publisher.points import parquet_bytes
from dgdr_publisher.report.logs import LAST_LINES, MAX_LINE, last_lines, redacted
from dgdr_publisher.report.reading import read_report
from dgdr_publisher.report.shards import MAX_SHARDS, SHARD_BYTES, encoded, logs_shard, points_shards
from dgdr_publisher.report.thinning import TOP, thinned
from dgdr_publisher.resources import run_identity

from tests.publisher.samples import AGG, DISAGG, points, run

RUN = run_identity(run())
SMALL = 20_000


def many(count: int, branch: str = "vllm/agg", seed: int = 1) -> Evaluations:
    """Points of a search, with numbers that do not compress."""
    generator = random.Random(seed)  # noqa: S311 - a repeatable choice
    scores = [generator.random() for _ in range(count)]
    feasible = [index % 3 != 0 for index in range(count)]
    return Evaluations(
        branch=branch,
        id=tuple(f"{branch}/{index:016x}" for index in range(count)),
        status=tuple("feasible" if one else "infeasible" for one in feasible),
        reason=tuple(None if one else "sla_constraint" for one in feasible),
        detail=tuple("" if one else "ttft 900 > 500" for one in feasible),
        used_gpus=(8,) * count,
        summary=tuple(f"{index} x agg tp2" for index in range(count)),
        metrics={"ttftMs": tuple(generator.random() for _ in range(count))},
        objectives={"throughput": tuple(score if one else None for score, one in zip(scores, feasible, strict=True))},
    )


def shards_of(*batches: Evaluations, shard_bytes: int = SHARD_BYTES, **options: Any) -> list[dict[str, Any]]:
    found = encoded(batches, {}, (), seed=7, limit_bytes=shard_bytes * MAX_SHARDS, **options)
    return points_shards(found, RUN, shard_bytes)


def test_points_come_back_as_they_were_in_any_order_of_the_shards() -> None:
    batches = (many(3000), many(500, "vllm/disagg"), points(DISAGG, AGG))
    shards = shards_of(*batches, shard_bytes=SMALL)
    assert len(shards) > 3
    report = read_report(reversed(shards))
    assert report.batches()[0] == batches[0].model_copy(update=_filled(batches[0], report.batches()[0]))
    assert [batch.branch for batch in report.batches()] == ["vllm/agg", "vllm/disagg", "vllm/disagg"][
        : len(report.batches())
    ]
    assert (report.points, report.kept, report.remark) == (3503, 3503, "")
    assert report.parquet == parquet_bytes(batches, {})


def test_groups_of_rows_hold_what_one_group_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = (many(900), points(DISAGG, AGG), many(300, "vllm/disagg"))
    whole = pq.read_table(io.BytesIO(parquet_bytes(batches, {})))
    monkeypatch.setattr(dgdr_publisher.points, "GROUP_ROWS", 250)
    parts = pq.ParquetFile(io.BytesIO(parquet_bytes(batches, {})))
    assert parts.metadata.num_row_groups == 5
    assert parts.read().to_pylist() == whole.to_pylist()


def _filled(one: Evaluations, other: Evaluations) -> dict[str, Any]:
    """Columns that other batches have and this one lacks are empty in it."""
    return {
        group: getattr(one, group)
        | {name: column for name, column in getattr(other, group).items() if name not in getattr(one, group)}
        for group in ("metrics", "objectives")
    }


def test_a_shard_fits_its_object_and_there_are_at_most_eight() -> None:
    shards = shards_of(many(3000), shard_bytes=SMALL)
    assert len(shards) <= MAX_SHARDS
    for shard in shards:
        assert len(base64.b64decode(shard["binaryData"]["points.parquet"])) <= SMALL
    assert SHARD_BYTES == 900 * 1024
    assert shards[0]["metadata"]["name"] == f"{RUN.name}-report-0"
    assert len(json.dumps(shards[0])) < 3 * 1024 * 1024


def test_what_does_not_fit_is_thinned_and_said_so() -> None:
    batch = many(20_000)
    keep = {batch.id[3], batch.id[19_000]}
    found = encoded([batch], {batch.id[5]: "a name"}, keep, seed=7, limit_bytes=100_000)
    assert len(found.content) <= 100_000
    assert (found.points, found.kept < 20_000) == (20_000, True)
    assert found.remark == f"{found.kept} of 20000 points: the front, the top and a sample with seed 7"
    ids = read_report(points_shards(found, RUN)).columns()["id"]
    assert len(ids) == found.kept
    assert keep | {batch.id[5]} <= set(ids)
    assert ids == sorted(ids)


def test_the_best_points_survive_and_the_sample_follows_the_seed() -> None:
    batch = many(10_000)
    values = batch.objectives["throughput"]
    order = sorted(range(10_000), key=lambda index: -(values[index] or 0))
    one, again, other = (thinned([batch], (), 2000, seed) for seed in (1, 1, 2))
    assert one == again != other
    for found in (one, other):
        assert len(found[0].id) == 2000
        assert {batch.id[index] for index in order[:TOP]} <= set(found[0].id)


def test_equal_points_are_equal_shards() -> None:
    assert shards_of(many(3000), shard_bytes=SMALL) == shards_of(many(3000), shard_bytes=SMALL)


def test_shards_of_two_checkpoints_are_not_mixed() -> None:
    first, second = shards_of(many(3000), shard_bytes=SMALL), shards_of(many(3000, seed=2), shard_bytes=SMALL)
    with pytest.raises(ReportError, match="read again"):
        read_report([first[0], *second[1:]])
    with pytest.raises(ReportError, match="read again"):
        read_report(first[:-1])
    with pytest.raises(ReportError, match="no first shard"):
        read_report(first[1:])


def test_no_points_are_a_report_too() -> None:
    assert read_report(shards_of()).batches() == ()


def test_the_last_lines_of_a_log_are_kept_cut_and_redacted() -> None:
    lines = last_lines(f"{index} {'x' * 1000}" for index in range(5000))
    assert (len(lines), lines[0][:5], len(lines[0])) == (LAST_LINES, "3000 ", MAX_LINE)


@pytest.mark.parametrize(
    "secret",
    [
        "token=hunter2hunter2",
        "HF_TOKEN: abcdefgh",
        'password="s3cr3t!x"',
        "Authorization: Bearer abc.def.ghi",
        "hf_abcdefghijklmnop",
        "https://user:pa55word@example.com/x",
        "AKIAABCDEFGHIJKLMNOP",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        "X-Amz-Signature=0123456789abcdef",
        "aws_secret_access_key = wJalrXUtnFEMI",
        "api_key=abcdef123456",
    ],
)
def test_a_secret_is_not_published(secret: str) -> None:
    value = re.split(r"Bearer |[=:] ?", secret, maxsplit=2)[-1].strip('" ') if "://" not in secret else "pa55word"
    shown = redacted(f"2026 INFO before {secret} after")
    assert value not in shown
    assert shown.startswith("2026 INFO before ")
    assert shown.endswith(" after")


@pytest.mark.parametrize(
    "line", ["max_num_batched_tokens=8192", "tokens: 300", "vllm/agg 12 of 31", "keys: a, b", "tokenizer=Qwen"]
)
def test_what_is_no_secret_stays(line: str) -> None:
    assert redacted(line) == line


def test_logs_lie_apart_from_the_points() -> None:
    shard = logs_shard({"sweeper": ["one", "two"], "publisher": []}, {"attempts": ["a"]}, RUN)
    assert shard["metadata"]["name"] == f"{RUN.name}-logs-0"
    assert gzip.decompress(base64.b64decode(shard["binaryData"]["sweeper.log.gz"])) == b"one\ntwo"
    assert json.loads(shard["data"]["facts.json"]) == {"attempts": ["a"]}


def test_logs_that_do_not_compress_are_shortened_to_fit() -> None:
    generator = random.Random(3)  # noqa: S311 - a repeatable choice
    noise = ["".join(chr(generator.randint(33, 0x2FFF)) for _ in range(MAX_LINE)) for _ in range(LAST_LINES)]
    shard = logs_shard({"sweeper": noise}, {}, RUN)
    content = base64.b64decode(shard["binaryData"]["sweeper.log.gz"])
    assert len(content) <= SHARD_BYTES
    assert gzip.decompress(content).decode().endswith(noise[-1])
