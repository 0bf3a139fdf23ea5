"""Which tables an operator of a compiled engine reads.

The names of operators are those of the engine's wire form (`build_engine_spec_json`), the names of tables those of the
files that `data_provenance` lists. Operators without an entry are formulas.
"""

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

_COLLECTIVES = ("custom_allreduce", "nccl", "oneccl")

TABLES_OF_OPERATOR: Mapping[str, tuple[str, ...]] = {
    "ContextAttention": ("context_attention",),
    "ContextMla": ("context_mla",),
    "CustomAllReduce": ("custom_allreduce",),
    "DsaContext": ("dsa_context_module",),
    "DsaGeneration": ("dsa_generation_module",),
    "Dsv4Context": ("dsv4_csa_context_module", "dsv4_hca_context_module"),
    "Dsv4Generation": ("dsv4_csa_generation_module", "dsv4_hca_generation_module"),
    "EncoderAttention": ("encoder_attention",),
    "Gdn": ("gdn",),
    "Gemm": ("gemm",),
    "GenerationAttention": ("generation_attention",),
    "GenerationMla": ("generation_mla",),
    "Kda": ("kda",),
    "Mamba2": ("mamba2",),
    "Mhc": ("mhc_module",),
    "MlaBmm": ("mla_bmm",),
    "MlaModuleContext": ("mla_context_module",),
    "MlaModuleGeneration": ("mla_generation_module",),
    "Moe": ("moe",),
    "MoeDispatch": _COLLECTIVES,
    "MsaContext": ("msa_context_module",),
    "MsaGeneration": ("msa_generation_module",),
    "Nccl": ("nccl", "oneccl"),
}


def tables_of_operators(operators: Iterable[JsonValue]) -> dict[str, frozenset[str]]:
    """Tables that each named operator may read.

    Args:
        operators: Operators in wire form, ``{"Gemm": {"name": …}}``; composed ones hold others.

    Returns:
        Operator name to table names, the tables of composed operators united.
    """
    tables: dict[str, frozenset[str]] = {}
    for operator in operators:
        if not isinstance(operator, dict):
            continue
        for fields in operator.values():
            if isinstance(fields, dict) and isinstance(name := fields.get("name"), str):
                found = frozenset(table for kind in _kinds(operator) for table in TABLES_OF_OPERATOR.get(kind, ()))
                tables[name] = tables.get(name, frozenset()) | found
    return tables


def _kinds(node: JsonValue) -> Iterable[str]:
    """Names of the operators in a piece of wire form: its capitalised keys."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key[:1].isupper():
                yield key
            yield from _kinds(value)
    elif isinstance(node, list):
        for value in node:
            yield from _kinds(value)
