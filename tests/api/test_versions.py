import pytest
from dgdr_api.errors import VersionChainBroken
from dgdr_api.terms import BACKENDS, Backend
from dgdr_api.versions import (
    BackendChains,
    Chain,
    common_data_version,
    data_versions,
    engine_version,
    resolve_chain,
    resolve_chains,
    runtime_version,
    table,
    template_engines,
)


def chain(image: str, backend: Backend, sku: str = "h200_sxm", override: str | None = None, **pins: str) -> Chain:
    return resolve_chain(f"nvcr.io/nvidia/ai-dynamo/{image}", override, pins, backend, sku)


def test_a_chain_without_a_gap_is_bound() -> None:
    found = chain("sglang-runtime:1.4.2", "sglang")

    assert (found.runtime, found.engine, found.performance_data, found.pinned) == ("1.4.2", "0.5.16", "0.5.16", False)
    assert chain("sglang-runtime:1.3.1", "sglang").performance_data == "0.5.14"


def test_finding_engine_0_24_requested_0_20_used_never_nearest() -> None:
    with pytest.raises(VersionChainBroken) as broken:
        chain("vllm-runtime:1.4.2", "vllm")

    message = str(broken.value)
    for link in ("vllm-runtime:1.4.2", "Dynamo 1.4.2", "vLLM 0.26.0", "h200_sxm", "0.24.0 and 0.27.0"):
        assert link in message
    assert broken.value.fix == "runtime.performanceDataVersion: {vllm: 0.24.0}"
    assert broken.value.fix in message
    assert broken.value.field == "runtime.performanceDataVersion.vllm"


def test_the_printed_pin_mends_the_chain_and_says_so() -> None:
    found = chain("vllm-runtime:1.4.2", "vllm", vllm="0.24.0")

    assert (found.engine, found.performance_data, found.pinned) == ("0.26.0", "0.24.0", True)


def test_a_pin_to_the_chains_own_version_is_bound() -> None:
    assert chain("sglang-runtime:1.4.2", "sglang", sglang="0.5.16").pinned is False


def test_a_pin_of_data_that_does_not_exist_is_refused() -> None:
    with pytest.raises(VersionChainBroken, match=r"0\.25\.0, pinned .* does not exist for vllm on h200_sxm"):
        chain("vllm-runtime:1.4.2", "vllm", vllm="0.25.0")


def test_qwen3_on_sglang_0_5_9_names_the_data_versions_that_exist() -> None:
    with pytest.raises(
        VersionChainBroken,
        match=r"SGLang 0\.5\.9;.*data for sglang on h200_sxm is that of 0\.5\.14 and 0\.5\.16.*Dynamo 1\.4\.2 or",
    ):
        chain("sglang-runtime:1.0.2", "sglang")


def test_a_backend_without_data_for_the_gpu_type() -> None:
    with pytest.raises(VersionChainBroken, match="no SGLang performance data for b60: b60 has data for vllm only"):
        chain("sglang-runtime:1.4.2", "sglang", "b60")
    with pytest.raises(VersionChainBroken, match="a30 has no performance data at all"):
        chain("sglang-runtime:1.4.2", "sglang", "a30")


def test_an_unknown_runtime_names_the_known_ones() -> None:
    with pytest.raises(VersionChainBroken, match=r"Dynamo 9\.9\.9.*not known; known are 1\.6\.1, .*versionOverride"):
        chain("vllm-runtime:9.9.9", "vllm")


def test_a_tag_without_a_version_asks_for_the_override() -> None:
    with pytest.raises(VersionChainBroken, match=r"set runtime\.versionOverride") as broken:
        chain("vllm-runtime:latest", "vllm")
    assert broken.value.field == "runtime.versionOverride"
    assert chain("sglang-runtime:latest", "sglang", override="1.4.2").runtime == "1.4.2"


@pytest.mark.parametrize(
    ("image", "override", "runtime"),
    [
        ("x/vllm-runtime:1.4.2", None, "1.4.2"),
        ("x/vllm-runtime:v1.4.2-efa", None, "1.4.2"),
        ("x/vllm-runtime:1.2.0-efa-amd64", None, "1.2.0"),
        ("x/vllm-runtime:1.4.2-enterprise", None, "1.4.2"),
        ("x/vllm-runtime:1.2.0-cuda13", None, "1.2.0"),
        ("x/tensorrtllm-runtime:1.5.0-nemotron-3.5-lightning-dev.1", None, "1.5.0"),
        ("x/vllm-runtime:1.4.2", "1.3.1", "1.3.1"),
        ("x/vllm-runtime:1.3.0-dev.1", None, "1.3.0-dev.1"),
        ("x/vllm-runtime:1.3.0-dev.1", "1.3.0", "1.3.0-dev.1"),
        ("x/vllm-runtime:1.3.0-dev.1", "1.4.2", "1.4.2"),
        ("x/vllm-runtime:1.5.0-dev.9", None, "1.5.0-dev.9"),
        ("x/vllm-runtime:1.5.0-dev.9", "1.5.0", "1.5.0"),
        ("x/vllm-runtime:0.8.1.post2", "0.8.1", "0.8.1.post2"),
        ("x/vllm-runtime:0.8.1.post2", None, None),
        ("x/vllm-runtime@sha256:abc", None, None),
        ("host:5000/vllm-runtime", None, None),
        ("host:5000/vllm-runtime:1.4.2@sha256:abc", None, "1.4.2"),
        ("x/vllm-runtime:1.6", None, None),
    ],
)
def test_the_version_of_an_image(image: str, override: str | None, runtime: str | None) -> None:
    assert runtime_version(image, override) == runtime


@pytest.mark.parametrize(
    ("runtime", "vllm", "sglang", "trtllm"),
    [
        ("1.6.1", "0.31.0", "0.5.21", "1.3.0rc29"),
        ("1.3.0.post1", "0.23.0", "0.5.14", "1.3.0rc19"),
        ("1.3.0-dev.1", "0.22.0", "0.5.12.post1", "1.3.0rc17"),
        ("1.1.0-dev.2", "0.19.0", "0.5.9", "1.3.0rc9"),
        ("0.9.0", "0.14.1", "0.5.8", "1.3.0rc1"),
        ("0.8.1.post3", "0.12.0", "0.5.6.post2", "1.2.0rc6.post3"),
        ("0.6.0", "0.11.0", "0.5.3.post2", "1.1.0rc5"),
    ],
)
def test_engines_of_a_runtime(runtime: str, vllm: str, sglang: str, trtllm: str) -> None:
    assert [engine_version(runtime, backend) for backend in BACKENDS] == [vllm, sglang, trtllm]


def test_every_runtime_names_all_engines() -> None:
    assert all(set(engines) == set(BACKENDS) for engines in table().runtimes.values())


def test_data_versions_are_those_of_the_performance_model() -> None:
    perf_database = pytest.importorskip("aiconfigurator_core.sdk.perf_database")

    for sku in table().performance_data:
        for backend in BACKENDS:
            slots = perf_database.get_version_slots(sku, backend) or {}
            assert set(slots.values()) == set(data_versions(backend, sku)), (sku, backend)
            assert slots.get("current") == next(iter(data_versions(backend, sku)), None)


def test_finding_an_engine_that_no_template_renders_ended_after_the_search() -> None:
    with pytest.raises(VersionChainBroken) as broken:
        chain("vllm-runtime:1.5.0", "vllm", vllm="0.24.0")

    assert str(broken.value) == (
        "image nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.5.0 is Dynamo 1.5.0, which carries vLLM 0.28.0; no template "
        "renders that engine, only 0.26.0, and performance data for vllm on h200_sxm is that of 0.24.0 and 0.27.0; set "
        "runtime.image to one of Dynamo 1.4.2 or 1.4.1 or 1.4.0, e.g. nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.2, "
        "with runtime.performanceDataVersion: {vllm: 0.24.0}"
    )
    assert broken.value.field == "runtime.image"
    assert broken.value.fix == "runtime.image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.2"
    assert chain("vllm-runtime:1.4.2", "vllm", vllm="0.24.0").engine == "0.26.0"


def test_what_would_do_has_a_template_and_its_own_data_where_there_is_any() -> None:
    with pytest.raises(VersionChainBroken, match=r"1\.4\.2 or 1\.4\.1 or 1\.4\.0, e\.g\. \S+vllm-runtime:1\.4\.2$"):
        chain("vllm-runtime:1.6.1@sha256:ab", "vllm", "b60", vllm="0.26.0")
    with pytest.raises(VersionChainBroken, match=r"0\.5\.10; to use that of another version, set [^;]*$"):
        chain("sglang-runtime:1.4.2", "sglang", "a100_sxm")


def test_an_override_that_counts_is_a_link_and_changes_with_the_image() -> None:
    with pytest.raises(
        VersionChainBroken,
        match=r"Dynamo 1\.3\.1 by runtime\.versionOverride, .* and runtime\.versionOverride to the same version",
    ):
        chain("vllm-runtime:1.4.2", "vllm", override="1.3.1", vllm="0.24.0")


def test_a_backend_without_any_template_has_a_chain() -> None:
    assert template_engines("trtllm") == ()
    assert chain("tensorrtllm-runtime:1.6.1", "trtllm", trtllm="1.3.0rc20").engine == "1.3.0rc29"
    assert chain("tensorrtllm-runtime:1.6.1", "trtllm", trtllm="1.3.0rc20").pinned


@pytest.mark.parametrize("backend", ["vllm", "sglang"])
@pytest.mark.parametrize("runtime", table().runtimes)
def test_only_engines_with_a_template_have_a_chain(runtime: str, backend: Backend) -> None:
    engine = table().runtimes[runtime][backend]
    pins: dict[str, str] = {backend: data_versions(backend, "h200_sxm")[0]}
    override = runtime.partition("-")[0].partition(".post")[0]
    image = f"x/{backend}-runtime:{runtime}"

    if engine in template_engines(backend):
        assert resolve_chain(image, override, pins, backend, "h200_sxm").engine == engine
        return
    with pytest.raises(VersionChainBroken, match="no template renders that engine") as broken:
        resolve_chain(image, override, pins, backend, "h200_sxm")
    assert broken.value.field == "runtime.image"


def chains(image: str, backend: Backend, *skus: str, **pins: str) -> BackendChains:
    return resolve_chains(f"x/{image}", None, pins, backend, skus)


def test_one_data_version_is_bound_on_every_gpu_type() -> None:
    found = chains("vllm-runtime:1.4.2", "vllm", "h200_sxm", "h100_sxm", "h200_sxm", vllm="0.24.0")
    assert [(sku, each.sku, each.performance_data) for sku, each in found.by_sku.items()] == [
        ("h200_sxm", "h200_sxm", "0.24.0"),
        ("h100_sxm", "h100_sxm", "0.24.0"),
    ]
    assert (found.performance_data, found.missing) == ("0.24.0", {})


def test_data_of_the_image_s_engine_may_be_missing_on_some_gpu_types() -> None:
    found = chains("sglang-runtime:1.4.2", "sglang", "a100_sxm", "h200_sxm", "b60")
    assert list(found.by_sku) == ["h200_sxm"]
    assert list(found.missing) == ["a100_sxm", "b60"]
    assert "data of 0.5.16 does not exist for sglang on a100_sxm, only 0.5.10" in found.missing["a100_sxm"]
    # a run names the version that the image binds anyway: that is no pin
    assert chains("sglang-runtime:1.4.2", "sglang", "a100_sxm", "h200_sxm", sglang="0.5.16").missing.keys() == {
        "a100_sxm"
    }


def test_a_pinned_version_that_is_missing_on_one_gpu_type_is_an_error() -> None:
    with pytest.raises(
        VersionChainBroken, match=r"0\.24\.0, pinned .* does not exist for vllm on a100_sxm, only 0\.14"
    ):
        chains("vllm-runtime:1.4.2", "vllm", "h200_sxm", "a100_sxm", vllm="0.24.0")


def test_data_that_is_missing_on_every_gpu_type_is_an_error() -> None:
    with pytest.raises(VersionChainBroken, match="on a100_sxm"):
        chains("vllm-runtime:1.4.2", "vllm", "a100_sxm", "h200_sxm")


def test_defaults_must_be_one_version() -> None:
    assert common_data_version("vllm", ["h100_sxm", "gb200", "h100_sxm"]) == "0.24.0"
    with pytest.raises(VersionChainBroken) as differ:
        common_data_version("vllm", ["h100_sxm", "a100_sxm"])
    assert str(differ.value) == (
        "the default data of vLLM is not the same on every GPU type (h100_sxm 0.24.0, a100_sxm 0.14.0); "
        "no version exists on all of them"
    )
    with pytest.raises(VersionChainBroken, match="no SGLang performance data for b60: b60 has data for vllm only"):
        common_data_version("sglang", ["h100_sxm", "b60"])


def test_differing_defaults_name_the_versions_that_all_have(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"one": ("2", "1"), "two": ("1",)}
    monkeypatch.setattr("dgdr_api.versions.data_versions", lambda _backend, sku: known[sku])
    with pytest.raises(VersionChainBroken, match=r"one 2, two 1.*all have 1: set one in") as differ:
        common_data_version("vllm", ["one", "two"])
    assert differ.value.fix == "search_space.backend_version: {vllm: 1}"
