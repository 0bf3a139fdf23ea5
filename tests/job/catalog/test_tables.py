from dgdr_job.catalog.tables import tables_of_operators


def test_composed_operators_unite_the_tables_of_their_parts() -> None:
    gemm = {"Gemm": {"name": "inner_gemm", "quant_mode": "bfloat16"}}
    operators = [
        {"Gemm": {"name": "context_qkv_gemm"}},
        {"Elementwise": {"name": "context_norm"}},
        {"Fallback": {"name": "context_mla_block", "primary": {"MlaModuleContext": {"name": "m"}}, "ops": [gemm]}},
        {"Dsv4Context": {"name": "context_attention"}},
        {"Gemm": {"name": "context_attention"}},
    ]
    assert tables_of_operators(operators) == {  # type: ignore[arg-type]
        "context_qkv_gemm": {"gemm"},
        "context_norm": frozenset(),
        "context_mla_block": {"mla_context_module", "gemm"},
        "context_attention": {"dsv4_csa_context_module", "dsv4_hca_context_module", "gemm"},
    }


def test_what_is_not_an_operator_is_passed_over() -> None:
    assert tables_of_operators([None, 3, "Gemm", {"Gemm": 1}, {"Gemm": {"n": 2}}]) == {}
