import hashlib
import importlib.util
import socket
from pathlib import Path
from typing import NoReturn

import pytest
from aiconfigurator_core.sdk import common, perf_database
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.wheel import config_sha256, near, shipped_models, shipped_skus, wheel_path, wheel_version


def test_the_shipped_ids_include_every_one_that_the_package_lists() -> None:
    assert set(shipped_models()) >= set(common.DefaultHFModels)
    assert len(shipped_models()) == 89


def test_the_skus_are_those_with_a_description() -> None:
    assert len(shipped_skus()) == 14
    assert all(perf_database.load_system_spec(sku)["gpu"]["mem_capacity"] > 0 for sku in shipped_skus())


def test_the_package_is_found_where_it_is_imported_from() -> None:
    spec = importlib.util.find_spec("aiconfigurator_core")
    assert spec is not None
    assert spec.origin is not None
    assert wheel_path() == Path(spec.origin).parent
    assert wheel_version() == "0.12.0"


def test_an_unknown_id_is_refused_with_near_names_and_without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: object) -> NoReturn:
        raise AssertionError("the network was tried")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    with pytest.raises(Unsupported, match=r"did you mean Qwen/Qwen3-32B, ") as refused:
        config_sha256("qwen/qwen3-32b")
    assert refused.value.reason == Reason.UNKNOWN_MODEL


def test_a_directory_is_known_by_its_content(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"has no config\.json"):
        config_sha256(str(tmp_path))
    (tmp_path / "config.json").write_bytes(b"{}")
    plain = config_sha256(str(tmp_path))
    assert plain == hashlib.sha256((2).to_bytes(8, "big") + b"{}" + bytes(8)).hexdigest()
    (tmp_path / "hf_quant_config.json").write_bytes(b"{}")
    assert config_sha256(str(tmp_path)) != plain
    assert config_sha256("Qwen/Qwen3-32B") != config_sha256("Qwen/Qwen3-32B-FP8")


def test_near_names_ignore_case_and_are_empty_when_nothing_resembles() -> None:
    assert near("H100-SXM5-80GB", shipped_skus()) == "; did you mean h100_sxm?"
    assert near("zzzz", shipped_skus()) == ""
