"""What a laptop finds for the same request: the cluster must hold the same, byte for byte."""

import io
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml
from dgdr_api.canonical import canonical_json
from dgdr_publisher.report.reading import read_report

from tests.cluster.team import Team, eventually

_UID = re.compile(r"-g(\d+)-[0-9a-f]{4}-([0-9a-f]{8})$")
_OF_THE_UID = ("/run-uid", "/request-uid")


@dataclass(frozen=True)
class Laptop:
    """The folder that ``dgdr search`` wrote."""

    folder: Path

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load((self.folder / "run.yaml").read_text())["status"]
        return found

    @property
    def candidates(self) -> list[dict[str, Any]]:
        return [yaml.safe_load(path.read_text()) for path in sorted((self.folder / "candidates").iterdir())]

    @property
    def points(self) -> bytes:
        return (self.folder / "points.parquet").read_bytes()


def search(request: dict[str, Any], folder: Path, *options: str) -> Laptop:
    """Search on this machine, as a user does.

    Args:
        request: the request; its namespace is part of what the candidates say of the model cache and names.
        folder: an empty one.
        options: more of the command line.
    """
    asked = folder / "request.yaml"
    asked.write_text(yaml.safe_dump(request))
    program = Path(sys.executable).parent / "dgdr"
    done = subprocess.run(
        [program, "search", asked, "--out", folder / "out", *options], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr
    return Laptop(folder / "out")


def assert_the_same(team: Team, run: dict[str, Any], laptop: Laptop) -> None:
    """Assert that a run of the cluster holds what a laptop found: candidates, their order, the numbers, every point."""
    named = {ref["name"] for ref in run["status"].get("candidateRefs", ())}
    # The run's status is written before the candidates go that it no longer names.
    eventually(lambda: set(team.candidates(run)) == named, "no candidate but those that the run names")
    found = team.candidates(run)
    assert sorted(map(_told, found.values())) == sorted(map(_told, laptop.candidates))
    ours, theirs = run["status"], laptop.status
    refs = [ref["name"] for ref in ours.get("candidateRefs", ())]
    assert sorted(refs) == sorted(found), "what is published is what the run names"
    assert [_plain(name) for name in refs] == [_plain(ref["name"]) for ref in theirs.get("candidateRefs", ())]
    for part in ("progress", "best", "versions", "provenance"):
        assert canonical_json([ours.get(part)]) == canonical_json([theirs.get(part)]), part
    assert _outcome(ours) == _outcome(theirs)
    assert _conditions(ours) == _conditions(theirs)
    assert _points(read_report(team.shards(run)).parquet) == _points(laptop.points)


def _told(item: dict[str, Any]) -> str:
    """Everything of a candidate but uids, times and what the server adds."""
    meta = item["metadata"]
    labels = {name: text for name, text in meta["labels"].items() if not name.endswith(_OF_THE_UID)}
    status = item["status"] | {"conditions": [_untimed(one) for one in item["status"]["conditions"]]}
    return canonical_json([_plain(meta["name"]), labels, item["spec"], status])


def _points(parquet: bytes) -> dict[str, list[Any]]:
    """Every column of every point; what was published is named without the uid."""
    columns: dict[str, list[Any]] = pq.read_table(io.BytesIO(parquet)).to_pydict()
    published = [name if name is None or not _UID.search(name) else _plain(name) for name in columns["publication"]]
    return columns | {"publication": published}


def _plain(name: str) -> str:
    """A candidate's name without the part that is of the request's uid."""
    assert _UID.search(name), name
    return _UID.sub(r"-g\1-\2", name)


def _outcome(status: dict[str, Any]) -> tuple[str, str]:
    return status["outcome"]["reason"], status["outcome"].get("message", "")


def _untimed(condition: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in condition.items() if name not in ("lastTransitionTime", "observedGeneration")
    }


def _conditions(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["type"]: _untimed(one) for one in status["conditions"]}
