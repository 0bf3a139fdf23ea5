"""The performance model's own texts, word for word, and what a person reads instead."""

from dgdr_job.catalog.wording import sentence

ELSEWHERE = "; another backend, GPU type or data version may have one (dgdr coverage)"


def test_a_missing_row_names_table_and_key() -> None:
    text = (
        'perf database error: MoE data missing for MoeKey { quant: "fp8", distribution: "uniform", topk: 22, '
        "num_experts: 512, hidden_size: 1024, inter_size: 2688, moe_tp_size: 1, moe_ep_size: 2 } at "
        "systems/data/h100_sxm/sglang/0.5.14"
    )
    assert sentence(text) == (
        "the MoE table has no row for quant fp8, distribution uniform, topk 22, num_experts 512, hidden_size 1024, "
        f"inter_size 2688, moe_tp_size 1, moe_ep_size 2{ELSEWHERE}"
    )


def test_a_missing_format_names_those_that_exist() -> None:
    text = (
        "perf database error: GEMM perf data missing for quant 'nvfp4_wo' at "
        'systems/data/h200_sxm/trtllm/1.3.0rc20; available: ["bfloat16", "fp8", "fp8_block"]'
    )
    read = "the GEMM table has no row for quant nvfp4_wo, only for bfloat16, fp8, fp8_block"
    assert sentence(text) == read + ELSEWHERE


def test_arithmetic_that_the_hardware_lacks() -> None:
    text = (
        "missing system flops: quant mode 'fp8_block' needs 'fp8_tc_flops', which this system's YAML does not "
        "define (or defines as a non-positive placeholder): either the platform does not support Fp8 compute"
    )
    assert sentence(text) == (
        "fp8_block computes in fp8, which this GPU type does not; use a checkpoint of another number format, or "
        "another GPU type"
    )


def test_what_is_not_known_passes_without_its_prefix() -> None:
    assert sentence("perf database error: something new") == "something new"
    assert sentence("Unsupported architecture X") == "Unsupported architecture X"
