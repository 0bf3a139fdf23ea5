import pytest
from dgdr_api.errors import UnknownSku
from dgdr_api.skus import catalog, resolve_sku
from dgdr_api.versions import table


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("h200_sxm", "h200_sxm"),
        ("H200", "h200_sxm"),
        ("H200-SXM", "h200_sxm"),
        ("H100-SXM5-80GB", "h100_sxm"),
        ("NVIDIA-H100-SXM5-80GB", "h100_sxm"),
        ("NVIDIA H100 80GB HBM3", "h100_sxm"),
        ("h100", "h100_sxm"),
        ("H100_PCIE", "h100_pcie"),
        ("B200", "b200_sxm"),
        ("GB200", "gb200"),
        ("GB200-NVL72", "gb200"),
        ("L40S", "l40s"),
        ("RTX-PRO-6000", "rtx_pro_6000_server"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "rtx_pro_6000_server"),
        ("A100", "a100_sxm"),
        ("A100-SXM4-80GB", "a100_sxm"),
    ],
)
def test_what_people_type_is_understood(typed: str, name: str) -> None:
    assert resolve_sku(typed).name == name


@pytest.mark.parametrize(("typed", "near"), [("h210_sxm", "h200_sxm"), ("H20", "h200_sxm"), ("L40", "l40s")])
def test_finding_8469_an_unknown_type_is_answered_with_near_names(typed: str, near: str) -> None:
    with pytest.raises(UnknownSku, match=f"{typed}.*did you mean .*{near}") as unknown:
        resolve_sku(typed)

    assert near in unknown.value.near


def test_a_type_like_none_is_answered_with_all_names() -> None:
    with pytest.raises(UnknownSku, match=r"known are h100_sxm, h200_sxm, .*l4$"):
        resolve_sku("quantum")


def test_every_product_label_of_the_catalog_is_a_name_too() -> None:
    for sku in catalog().values():
        for label in (sku.node_labels or {}).values():
            assert label == sku.arch or resolve_sku(label) is sku


def test_no_two_types_share_a_name() -> None:
    names = [name.lower() for sku in catalog().values() for name in (sku.name, *sku.aliases)]

    assert len(names) == len(set(names))
    assert all(resolve_sku(alias) is sku for sku in catalog().values() for alias in sku.aliases)


def test_facts() -> None:
    gb200, h100 = resolve_sku("gb200"), resolve_sku("h100")

    assert (gb200.gpus_per_node, gb200.gpus_per_rack, gb200.arch, gb200.shm_size_decode) == (4, 72, "arm64", "128Gi")
    assert {taint["key"] for taint in gb200.tolerations} == {"nvidia.com/gpu", "kubernetes.io/arch"}
    assert (h100.memory_bytes, h100.gpus_per_node, h100.tolerations, h100.shm_size) == (80 * 1024**3, 8, (), "64Gi")
    assert resolve_sku("b300").node_labels is None


def test_the_catalog_agrees_with_the_version_table() -> None:
    assert {name for name, sku in catalog().items() if sku.performance_data} == set(table().performance_data)


def test_the_catalog_agrees_with_the_performance_model() -> None:
    perf_database = pytest.importorskip("aiconfigurator_core.sdk.perf_database")

    for name, sku in catalog().items():
        spec = perf_database.load_system_spec(name)
        assert spec["gpu"]["mem_capacity"] == sku.memory_bytes, name
        assert spec["node"]["num_gpus_per_node"] == sku.gpus_per_node, name
        assert spec["node"].get("num_gpus_per_rack") == sku.gpus_per_rack, name
        assert spec["gpu"].get("sm_version") == sku.sm, name
