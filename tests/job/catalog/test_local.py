"""A model that is not shipped: read from a folder, checked, and known by its content; nothing is downloaded."""

import json
import socket
from pathlib import Path
from typing import Any, NoReturn

import pytest
from dgdr_api.model_ref import ModelRef
from dgdr_api.shape import Shape
from dgdr_job.catalog import local
from dgdr_job.catalog.cache import DiskCache
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.local import LocalModel, ModelInputs, local_model, model_of_directory
from dgdr_job.catalog.wheel import config_sha256, wheel_path

from tests.conftest import ROOT

NAME = "me/mine"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
LLAMA = ROOT / "tests" / "data" / "models" / "llama-fp8-dynamic"
SHIPPED: dict[str, Any] = json.loads((wheel_path() / "model_configs" / "Qwen--Qwen3-0.6B_config.json").read_text())


def put(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def of_config_map(folder: Path, remote_code: str = "Never", **names: str) -> LocalModel | None:
    ref = {"name": NAME, "remoteCode": remote_code, "config": {"configMap": {"name": "qwen", **names}}}
    ref |= {} if remote_code != "TrustCacheAndRevision" else {"revision": COMMIT, "cache": {"pvc": {"name": "models"}}}
    return local_model(ModelRef.model_validate(ref), ModelInputs(config_maps={"qwen": folder}))


def of_claim(folder: Path, revision: str | None = None, **pvc: str) -> LocalModel | None:
    ref: dict[str, Any] = {"name": NAME, "cache": {"pvc": {"name": "models", **pvc}}}
    ref |= {} if revision is None else {"revision": revision}
    return local_model(ModelRef.model_validate(ref), ModelInputs(claims={"models": folder}))


def refusal(call: Any) -> str:
    with pytest.raises(Unsupported) as refused:
        call()
    assert refused.value.reason == Reason.UNKNOWN_MODEL
    return refused.value.message


class TestConfigMap:
    def test_the_keys_that_the_request_names_are_read(self, tmp_path: Path) -> None:
        put(tmp_path / "mine.json", SHIPPED)
        put(tmp_path / "quant.json", {"quantization": {}})
        found = of_config_map(tmp_path, key="mine.json", quantKey="quant.json")
        assert found == LocalModel(json.dumps(SHIPPED).encode(), b'{"quantization": {}}')

    def test_a_mounted_config_map_consists_of_links_that_stay_in_it(self, tmp_path: Path) -> None:
        put(tmp_path / "..2026_01_01" / "config.json", SHIPPED)
        (tmp_path / "..data").symlink_to("..2026_01_01")
        (tmp_path / "config.json").symlink_to("..data/config.json")
        found = of_config_map(tmp_path)
        assert found is not None
        assert json.loads(found.config) == SHIPPED

    def test_a_link_that_leaves_it_is_refused(self, tmp_path: Path) -> None:
        put(tmp_path / "secret.json", SHIPPED)
        (tmp_path / "map").mkdir()
        (tmp_path / "map" / "config.json").symlink_to("../secret.json")
        assert refusal(lambda: of_config_map(tmp_path / "map")) == (
            "modelRef.config.configMap qwen, key: config.json is a symbolic link that leaves the folder; put the file "
            "itself there"
        )

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("{", "is no JSON that can be used: Expecting property name"),
            ("[]", "must be a JSON object"),
            ('{"architectures": ["A"], "rope_theta": NaN}', "is no JSON that can be used: NaN is no finite number"),
            ('{"architectures": ["A"], "rope_theta": 1e400}', "is no JSON that can be used: 1e400 is no finite number"),
            ("[" * 100_000, "is no JSON that can be used: "),
            ("{}", "architectures must name the model's class"),
            ('{"architectures": []}', "architectures must name the model's class"),
            ('{"architectures": "Qwen3ForCausalLM"}', "architectures must name the model's class"),
            ({**SHIPPED, "hidden_size": 2.5}, "hidden_size is 2.5, must be a whole number from 1 to 16,777,216"),
            ({**SHIPPED, "vocab_size": -1}, "vocab_size is -1, must be a whole number from 1 to 16,777,216"),
            ({**SHIPPED, "text_config": {"head_dim": True}}, "head_dim is true, must be a whole number from 1"),
        ],
    )
    def test_a_config_that_cannot_be_used_is_told_why(self, tmp_path: Path, content: object, message: str) -> None:
        put(tmp_path / "config.json", content)
        found = refusal(lambda: of_config_map(tmp_path))
        assert found.startswith(f"modelRef.config.configMap qwen, key config.json: {message}")

    def test_what_is_missing_or_too_large_or_no_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        where = "modelRef.config.configMap qwen"
        assert refusal(lambda: of_config_map(tmp_path)) == (
            f"{where}, key: there is no config.json; put the model's config.json there"
        )
        put(tmp_path / "config.json", SHIPPED)
        assert refusal(lambda: of_config_map(tmp_path, quantKey="q.json")).startswith(f"{where}, quantKey: there is no")
        monkeypatch.setattr(local, "MAX_BYTES", 100)
        assert refusal(lambda: of_config_map(tmp_path)) == f"{where}, key: config.json is larger than 100 bytes"
        (tmp_path / "folder").mkdir()
        assert refusal(lambda: of_config_map(tmp_path, key="folder")) == f"{where}, key: folder is no regular file"
        (tmp_path / "loop").symlink_to("loop")
        assert refusal(lambda: of_config_map(tmp_path, key="loop")).startswith(f"{where}, key: loop cannot be read")

    def test_a_folder_that_nobody_gave_is_told_how_to_give(self) -> None:
        ref = ModelRef.model_validate({"name": NAME, "config": {"configMap": {"name": "qwen"}}})
        assert refusal(lambda: local_model(ref, ModelInputs())) == (
            "modelRef.config.configMap qwen: its files are not here; on a laptop give --config-map qwen=DIRECTORY"
        )


OWN_CODE = {**SHIPPED, "auto_map": {"AutoConfig": "configuration_mine.MyConfig"}}


class TestRemoteCode:
    def test_never_refuses_a_config_with_code_of_its_own(self, tmp_path: Path) -> None:
        put(tmp_path / "config.json", OWN_CODE)
        assert refusal(lambda: of_config_map(tmp_path)).startswith(
            "modelRef.config.configMap: its config.json names Python code of its own (auto_map), which "
            "modelRef.remoteCode Never does not run; set TrustCacheAndRevision"
        )
        put(tmp_path / "config.json", {**SHIPPED, "text_config": {"auto_map": {"AutoConfig": "a.B"}}})
        assert "auto_map" in refusal(lambda: of_config_map(tmp_path))

    @pytest.mark.parametrize("trust", ["AlwaysTrust", "TrustCacheAndRevision"])
    def test_trust_takes_it(self, tmp_path: Path, trust: str) -> None:
        put(tmp_path / "config.json", OWN_CODE)
        assert of_config_map(tmp_path, trust) is not None


class TestClaim:
    def test_a_path_in_the_claim(self, tmp_path: Path) -> None:
        put(tmp_path / "a" / "b" / "config.json", SHIPPED)
        put(tmp_path / "a" / "b" / "hf_quant_config.json", {"quantization": {}})
        found = of_claim(tmp_path, modelPath="a/b/")
        assert found == LocalModel(json.dumps(SHIPPED).encode(), b'{"quantization": {}}')

    @pytest.mark.parametrize("revision", [COMMIT, "v1", None])
    def test_a_hugging_face_cache_at_the_revision(self, tmp_path: Path, revision: str | None) -> None:
        cache = tmp_path / "hub" / "models--me--mine"
        put(cache / "blobs" / "abc", SHIPPED)
        (cache / "snapshots" / COMMIT).mkdir(parents=True)
        (cache / "snapshots" / COMMIT / "config.json").symlink_to("../../blobs/abc")
        put(cache / "refs" / "v1", COMMIT)
        put(cache / "refs" / "main", COMMIT + "\n")
        found = of_claim(tmp_path, revision)
        assert found is not None
        assert json.loads(found.config) == SHIPPED

    def test_a_revision_that_is_not_there_or_points_to_nothing(self, tmp_path: Path) -> None:
        assert refusal(lambda: of_claim(tmp_path, "v2")) == (
            "modelRef.cache.pvc models, revision v2: there is no hub/models--me--mine/refs/v2; put the model's v2 there"
        )
        put(tmp_path / "hub" / "models--me--mine" / "refs" / "v2", "../../etc")
        assert "holds '../../etc', no commit of 40 hex digits" in refusal(lambda: of_claim(tmp_path, "v2"))
        assert refusal(lambda: of_claim(tmp_path, COMMIT)).startswith(
            f"modelRef.cache.pvc models: there is no hub/models--me--mine/snapshots/{COMMIT}/config.json"
        )

    def test_a_shipped_model_needs_nothing_of_its_claim(self) -> None:
        ref = ModelRef.model_validate({"name": "Qwen/Qwen3-32B", "cache": {"pvc": {"name": "models"}}})
        assert local_model(ref, ModelInputs()) is None


def test_an_unknown_name_is_told_what_would_do_and_no_network_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: object) -> NoReturn:
        raise AssertionError("the network was tried")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    catalog = Catalog()
    catalog.take_model(ModelRef(name="Qwen/Qwen3-32C"), ModelInputs())
    message = refusal(lambda: catalog.model("Qwen/Qwen3-32C"))
    assert message.startswith("modelRef.name: 'Qwen/Qwen3-32C' is none of the 89 models whose configuration is shipped")
    assert "did you mean Qwen/Qwen3-32B" in message
    assert message.endswith("give its config.json by modelRef.config.configMap, or its files by modelRef.cache.pvc")


def test_a_folder_in_the_working_directory_is_never_taken_for_a_shipped_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "Qwen" / "Qwen3-32B" / "config.json", SHIPPED)
    put(tmp_path / "me" / "mine" / "config.json", SHIPPED)
    monkeypatch.chdir(tmp_path)
    shipped = refusal(lambda: local_model(ModelRef(name="Qwen/Qwen3-32B"), ModelInputs()))
    assert "a folder of that name stands in the working directory" in shipped
    assert "is none of the 89 models" in refusal(lambda: local_model(ModelRef(name=NAME), ModelInputs()))


def test_a_directory_of_a_native_configuration(tmp_path: Path) -> None:
    assert refusal(lambda: model_of_directory(tmp_path / "none", "here")) == (
        "here: is no directory; name one with a config.json"
    )
    put(tmp_path / "config.json", SHIPPED)
    assert model_of_directory(tmp_path, "here").digest == config_sha256(str(tmp_path))


def taken(cache: Path, folder: Path, name: str = NAME) -> Catalog:
    catalog = Catalog(DiskCache(cache))
    ref = ModelRef.model_validate({"name": name, "config": {"configMap": {"name": "qwen"}}})
    catalog.take_model(ref, ModelInputs(config_maps={"qwen": folder}))
    return catalog


def test_equal_files_at_another_place_under_another_name_are_one_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("a", "b"):
        put(tmp_path / place / "config.json", SHIPPED)
    first = taken(tmp_path / "cache", tmp_path / "a")
    tokens = first.kv(PerfIdentity(NAME, "h200_sxm", "vllm", "0.24.0"), Shape(), 8192).tokens_per_rank
    second = taken(tmp_path / "cache", tmp_path / "b", "you/yours")

    def opened(_: object) -> NoReturn:
        raise AssertionError("the performance model was opened")

    monkeypatch.setattr(second, "_open", opened)
    again = second.kv(PerfIdentity("you/yours", "h200_sxm", "vllm", "0.24.0"), Shape(), 8192)
    assert again.tokens_per_rank == tokens
    assert second.local_digest("you/yours") == first.local_digest(NAME) == config_sha256(str(tmp_path / "a"))
    assert second.model("you/yours").layers == 28


def test_a_refusal_names_the_model_and_no_path(tmp_path: Path) -> None:
    put(tmp_path / "a" / "config.json", {**SHIPPED, "architectures": ["MambaForever"]})
    for name in (NAME, "you/yours"):
        message = refusal(lambda name=name: taken(tmp_path / "cache", tmp_path / "a", name).model(name))
        assert message.startswith(f"{name}: its config.json cannot be used: The model's architecture MambaForever")
        assert str(tmp_path) not in message


def test_a_key_that_the_architecture_needs_is_named(tmp_path: Path) -> None:
    put(tmp_path / "config.json", {key: value for key, value in SHIPPED.items() if key != "hidden_size"})
    message = refusal(lambda: taken(tmp_path / "cache", tmp_path).model(NAME))
    assert message == f"{NAME}: its config.json cannot be used: the key 'hidden_size' is missing"


def test_a_folder_that_changes_after_it_was_read_changes_nothing(tmp_path: Path) -> None:
    put(tmp_path / "config.json", SHIPPED)
    catalog = taken(tmp_path / "cache", tmp_path)
    put(tmp_path / "config.json", {**SHIPPED, "num_hidden_layers": 7})
    assert catalog.model(NAME).layers == 28
    assert taken(tmp_path / "cache", tmp_path).model(NAME).layers == 7


def test_damaged_copies_are_written_again_and_a_cache_that_cannot_be_written_is_passed_by(tmp_path: Path) -> None:
    model = LocalModel(b'{"a": 1}', b"{}")
    folder = model.placed_in(tmp_path / "models")
    assert folder == tmp_path / "models" / model.digest
    (folder / "config.json").write_text("damaged")
    assert (model.placed_in(tmp_path / "models") / "config.json").read_bytes() == b'{"a": 1}'
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "hf_quant_config.json"]
    (tmp_path / "file").write_text("")
    assert (model.placed_in(tmp_path / "file") / "config.json").read_bytes() == b'{"a": 1}'


def test_the_formats_of_a_checkpoint_that_is_not_shipped_are_those_of_its_config(tmp_path: Path) -> None:
    catalog = taken(tmp_path, LLAMA)
    facts = catalog.model(NAME)
    assert (facts.architecture, facts.layers, facts.quantization) == ("LlamaForCausalLM", 80, "compressed-tensors")
    formats = catalog.quantization(PerfIdentity(NAME, "h200_sxm", "vllm", "0.24.0"))
    assert (formats.gemm, formats.kv) == ("fp8", "bfloat16")
