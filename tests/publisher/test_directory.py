import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from dgdr_api.base import wire
from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate
from dgdr_api.run import DynamoGraphDeploymentRun
from dgdr_publisher.directory import DirectoryStore
from dgdr_publisher.errors import StoreError
from dgdr_publisher.publisher import Publisher
from dgdr_publisher.rendering import evaluated_from_document, verify_dgd

from tests.publisher.samples import AGG, DISAGG, NOW, REFUSED, events, run


def publish(folder: Path, now: str = NOW) -> Path:
    publisher = Publisher(run(), DirectoryStore(folder), lambda: now)
    for event in events(REFUSED, DISAGG, AGG):
        publisher.handle(event)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_what_a_folder_holds(tmp_path: Path) -> None:
    found = files(publish(tmp_path / "out"))
    candidates = [name for name in found if name.startswith("candidates/")]
    assert len(candidates) == 2
    assert set(found) - set(candidates) == {
        "run.yaml",
        "dgd.yaml",
        "dgd.mapping.yaml",
        "points.parquet",
        "events.ndjson",
    }


def test_run_and_candidates_are_valid_objects(tmp_path: Path) -> None:
    folder = publish(tmp_path)
    read = DynamoGraphDeploymentRun.model_validate(yaml.safe_load((folder / "run.yaml").read_text()))
    assert read.spec == run().spec
    assert read.status is not None
    for ref in read.status.candidate_refs:
        document = yaml.safe_load((folder / "candidates" / f"{ref.name}.yaml").read_text())
        assert DynamoGraphDeploymentCandidate.model_validate(document).metadata.name == ref.name
    assert evaluated_from_document(document).candidate == AGG.candidate


def test_the_deployment_verifies_and_its_mapping_points_into_it(tmp_path: Path) -> None:
    folder = publish(tmp_path)
    dgd = yaml.safe_load((folder / "dgd.yaml").read_text())
    assert verify_dgd(dgd, DISAGG, run().spec) == []
    rows = yaml.safe_load((folder / "dgd.mapping.yaml").read_text())
    by_name = {row["parameter"]: row for row in rows}
    assert by_name["decode.workers"] == {
        "parameter": "decode.workers",
        "value": "4",
        "destination": "/spec/components/2/replicas",
    }


def test_every_point_is_in_the_table(tmp_path: Path) -> None:
    folder = publish(tmp_path)
    rows = pq.read_table(folder / "points.parquet").to_pylist()
    assert [row["status"] for row in rows] == ["feasible", "feasible", "feasible", "infeasible"]
    assert rows[0]["publication"].startswith("not rendered: candidate.roles.agg.engine.preemption")
    assert rows[1]["publication"].startswith("qwen-g1-")
    assert rows[3] == {
        "branch": "vllm/disagg",
        "id": "0123456789abcdef",
        "status": "infeasible",
        "reason": "sla_constraint",
        "detail": "ttft 900 > 500",
        "used_gpus": 3,
        "summary": "too slow",
        "publication": None,
        "metrics.ttftMs": 900.0,
        "objectives.throughputPerGpu": None,
    }


def test_the_journal_is_one_event_a_line(tmp_path: Path) -> None:
    lines = (publish(tmp_path) / "events.ndjson").read_text().splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, 8))
    assert [json.loads(line) for line in lines] == [wire(event) for event in events(REFUSED, DISAGG, AGG)]


def test_equal_searches_are_equal_bytes_whenever_they_run(tmp_path: Path) -> None:
    first = files(publish(tmp_path / "one"))
    second = files(publish(tmp_path / "two", "2031-01-01T00:00:00Z"))
    assert {name for name in first if first[name] != second[name]} == {"run.yaml"}


def test_nothing_is_left_beside_the_files(tmp_path: Path) -> None:
    assert not [name for name in files(publish(tmp_path)) if Path(name).name.startswith(".")]


def test_a_candidate_is_removed(tmp_path: Path) -> None:
    store, folder = DirectoryStore(tmp_path), publish(tmp_path)
    name = next((folder / "candidates").iterdir()).stem
    store.remove_candidate(name)
    store.remove_candidate(name)
    assert not (folder / "candidates" / f"{name}.yaml").exists()


def test_earlier_results_go_and_foreign_files_stay(tmp_path: Path) -> None:
    folder = publish(tmp_path)
    left = (".dgd.yaml.abc_1234.part", "candidates/.x.yaml.abc_1234.part")
    foreign = ("notes.txt", ".notes.part", ".notes.txt.abc.part", "candidates/notes.txt", "candidates/sub.yaml/x")
    (folder / "candidates" / "sub.yaml").mkdir()
    for name in (*left, *foreign):
        (folder / name).write_text("")
    DirectoryStore(folder).remove_earlier_results()
    assert set(files(folder)) == {"run.yaml", *foreign}


def test_candidates_are_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "candidates").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="candidates: is a symbolic link"):
        DirectoryStore(tmp_path / "out")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        DirectoryStore(tmp_path / "file")
    store = DirectoryStore(tmp_path / "out")
    (tmp_path / "out" / "run.yaml").mkdir()
    (tmp_path / "out" / "run.yaml" / "x").write_text("")
    with pytest.raises(StoreError, match=r"run\.yaml"):
        store.write_run(run())
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]
