from pathlib import Path
from typing import Any

import pytest
import yaml
from dgdr_api.parse import read
from dgdr_api.replay_spec import ReplaySpec
from dgdr_api.schema import DIALECT, DOCUMENTS, json_schema
from pydantic import BaseModel

from tests.api.objects import MINIMAL_REQUEST, candidate, run

EXAMPLE = Path(__file__).resolve().parents[3] / "shared" / "data" / "contract" / "replay-spec.example.yaml"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_has_a_valid_schema(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json_schema(name)

    assert schema["$schema"] == DIALECT
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(("name", "valid"), [("request", MINIMAL_REQUEST), ("run", run()), ("candidate", candidate())])
def test_valid_objects_fit(name: str, valid: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json_schema(name))

    assert list(validator.iter_errors(valid)) == []
    assert list(validator.iter_errors(valid | {"extra": 1})) != []


def test_the_replay_spec_of_the_contract_is_read() -> None:
    if not EXAMPLE.is_file():
        pytest.skip("the contract's example is not beside the repository")

    spec = read(ReplaySpec, yaml.safe_load(EXAMPLE.read_text("utf-8")))

    assert spec.used_gpus == 6
    assert spec.kv_transfer.bandwidth_gb_per_s is None


def test_another_room_adds_its_documents() -> None:
    class Config(BaseModel):
        seed: int = 1

    assert json_schema("config", {**DOCUMENTS, "config": Config})["properties"]["seed"]["type"] == "integer"


def test_an_unknown_document_names_the_known_ones() -> None:
    with pytest.raises(KeyError, match="no document runs; there are request, run, candidate, replay-spec, events"):
        json_schema("runs")
