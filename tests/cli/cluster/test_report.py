"""The report of a run, put together from its ConfigMaps."""

import base64
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from dgdr_api import reasons
from dgdr_cli.cluster import stored_report
from dgdr_cli.cluster.kinds import CONFIG_MAP
from dgdr_publisher.report.shards import ANNOTATION_SHARD, encoded, points_shards
from dgdr_publisher.resources import run_identity

from tests.cli.cluster.conftest import Ask
from tests.cli.cluster.world import World
from tests.publisher.samples import AGG, DISAGG, points


def test_points_as_a_file(ask: Ask, world: World, tmp_path: Path) -> None:
    found, out = world.ended(), tmp_path / "points.parquet"
    ended = ask("report", found.run, "--out", out)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, f"{out}: 3 points\n", "")
    table = pq.read_table(out).to_pydict()
    assert table["id"] == [DISAGG.id, AGG.id, "0123456789abcdef"]
    assert table["publication"] == [*found.candidates, None]

    before = out.read_bytes()
    again = ask("report", found.run, "--out", out)
    assert again.exit_code == 2
    assert f"--out {out}: exists and is left as it is" in again.stderr
    assert out.read_bytes() == before
    nowhere = ask("report", found.run, "--out", tmp_path / "none" / "points.parquet")
    assert nowhere.exit_code == 4
    assert str(tmp_path / "none") in nowhere.stderr


def test_points_as_data(ask: Ask, world: World) -> None:
    found = world.ended()
    rows = json.loads(ask("report", found.run, "-o", "json").stdout)
    assert [(row["status"], row.get("reason")) for row in rows] == [
        ("feasible", None),
        ("feasible", None),
        ("infeasible", "sla_constraint"),
    ]
    assert rows[0]["objectives.throughputPerGpu"] == 100.0
    assert "objectives.throughputPerGpu" not in rows[2]
    text = ask("report", found.run)
    assert "sla_constraint" in text.stdout


def test_logs_of_both_containers(ask: Ask, world: World) -> None:
    found = world.ended()
    ended = ask("report", found.run, "--logs")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout == "==> publisher <==\nwrote\n==> sweeper <==\nstarted\nended\n"
    data = json.loads(ask("report", found.run, "--logs", "-o", "json").stdout)
    assert data == {"publisher": ["wrote"], "sweeper": ["started", "ended"]}
    both = ask("report", found.run, "--logs", "--out", "x")
    assert both.exit_code == 2


def test_logs_cannot_harm_a_terminal(ask: Ask, world: World) -> None:
    of = world.run()
    world.publish(of, logs={"sweeper": ["\x1b[2Jgone\x9b1m"]})
    assert ask("report", of.metadata.name, "--logs").stdout == "==> sweeper <==\n\\u001b[2Jgone\\u009b1m\n"


def test_a_run_without_report_or_logs(ask: Ask, world: World) -> None:
    name = world.run().metadata.name
    world.stand(name, reasons.POD_REJECTED, "no such claim")
    ended = ask("report", name)
    assert ended.exit_code == 2
    assert f"run {name} has no report: PodRejected: no such claim" in ended.stderr
    logs = ask("report", name, "--logs")
    assert logs.exit_code == 2
    assert f"run {name} has no stored logs" in logs.stderr


def test_a_thinned_report_says_so(ask: Ask, world: World) -> None:
    of = world.run()
    found = encoded([points(DISAGG, AGG)], {}, [], seed=42, max_rows=2)
    for shard in points_shards(found, run_identity(of), shard_bytes=500):
        world.publisher.apply(CONFIG_MAP, shard)
    ended = ask("report", of.metadata.name, "-o", "json")
    assert ended.exit_code == 0
    assert len(json.loads(ended.stdout)) == 2
    assert "is thinned: 2 of 3 points: the front, the top and a sample with seed 42" in ended.stderr


def shards(world: World) -> list[dict[str, Any]]:
    return [one for one in world.user.list(CONFIG_MAP, world.namespace).items if "-report-" in one["metadata"]["name"]]


def test_shards_that_make_no_whole(ask: Ask, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_report, "_PAUSE_S", 0)
    of = world.run()
    found = encoded([points(DISAGG, AGG)], {}, [], seed=42)
    for shard in points_shards(found, run_identity(of), shard_bytes=1000):
        world.publisher.apply(CONFIG_MAP, shard)
    first, *_, last = shards(world)
    assert ask("report", of.metadata.name).exit_code == 0

    flipped = bytearray(base64.b64decode(last["binaryData"]["points.parquet"]))
    flipped[-1] ^= 1
    world.user.replace(CONFIG_MAP, last | {"binaryData": {"points.parquet": base64.b64encode(flipped).decode()}})
    changed = ask("report", of.metadata.name)
    assert changed.exit_code == 4
    assert "do not make the whole of digest" in changed.stderr

    world.delete(CONFIG_MAP, last["metadata"]["name"])
    missing = ask("report", of.metadata.name)
    assert missing.exit_code == 4
    assert "shards of 1 checkpoints" in missing.stderr

    first["metadata"]["annotations"][ANNOTATION_SHARD] = "no JSON"
    world.user.replace(CONFIG_MAP, first)
    strange = ask("report", of.metadata.name)
    assert strange.exit_code == 4
    assert "the shards are not as a publisher writes them" in strange.stderr


def test_points_that_are_no_parquet(ask: Ask, world: World) -> None:
    world.ended()
    (shard,) = shards(world)
    content = b"no parquet"
    about = json.loads(shard["metadata"]["annotations"][ANNOTATION_SHARD])
    about["digest"] = hashlib.sha256(content).hexdigest()[:32]
    shard["metadata"]["annotations"][ANNOTATION_SHARD] = json.dumps(about)
    shard["binaryData"] = {"points.parquet": base64.b64encode(content).decode()}
    world.user.replace(CONFIG_MAP, shard)
    run = shard["metadata"]["ownerReferences"][0]["name"]
    ended = ask("report", run, "-o", "json")
    assert ended.exit_code == 4
    assert "no Parquet file" in ended.stderr


def test_somebody_elses_config_map_is_not_the_report(ask: Ask, world: World) -> None:
    of = world.run()
    (shard,) = points_shards(encoded([points(AGG)], {}, [], seed=42), run_identity(of))
    shard["metadata"]["ownerReferences"] = []
    world.user.create(CONFIG_MAP, shard)
    assert ask("report", of.metadata.name).exit_code == 2


def test_a_log_that_unpacks_to_too_much_is_cut(ask: Ask, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    found = world.ended()
    monkeypatch.setattr(stored_report, "MOST_LOG_BYTES", 10)
    (logs,) = [one for one in world.user.list(CONFIG_MAP, world.namespace).items if "-logs-" in one["metadata"]["name"]]
    logs["binaryData"] = {"sweeper.log.gz": base64.b64encode(gzip.compress(b"x" * 1000)).decode()}
    logs = world.user.replace(CONFIG_MAP, logs)
    assert ask("report", found.run, "--logs").stdout == f"==> sweeper <==\n{'x' * 10}\n"
    world.user.replace(CONFIG_MAP, logs | {"binaryData": {"sweeper.log.gz": base64.b64encode(b"no").decode()}})
    ended = ask("report", found.run, "--logs")
    assert ended.exit_code == 4
    assert "sweeper.log.gz is no packed log" in ended.stderr
