from dgdr_job.catalog.provenance import OperatorTime, SourceShares, source_shares
from hypothesis import given
from hypothesis import strategies as st

TIMES = st.lists(
    st.builds(
        OperatorTime,
        st.sampled_from(["gemm", "moe", "norm"]),
        st.floats(0, 1e6),
        st.sampled_from(["silicon", "mixed", "empirical", "estimated", "sol", "xshape"]),
    )
)


def test_shares_follow_the_words_of_the_performance_model() -> None:
    times = [
        OperatorTime("gemm", 4.0, "silicon"),
        OperatorTime("moe", 2.0, "silicon"),
        OperatorTime("moe_norm", 1.0, "empirical"),
        OperatorTime("mamba", 1.0, "sol"),
        OperatorTime("static_gemm", 1.0, "estimated"),
        OperatorTime("both", 0.5, "mixed"),
        OperatorTime("transferred", 0.5, "xquant"),
    ]
    assert source_shares(times, frozenset({"moe", "moe_norm"})) == SourceShares(
        silicon=0.4, empirical=0.2, estimated=0.2, borrowed=0.2
    )


def test_a_pass_without_time_is_estimated() -> None:
    assert source_shares([], frozenset()) == SourceShares(silicon=0.0, empirical=0.0, estimated=1.0, borrowed=0.0)


@given(TIMES)
def test_shares_sum_to_one(times: list[OperatorTime]) -> None:
    shares = source_shares(times, frozenset({"moe"}))
    parts = (shares.silicon, shares.empirical, shares.estimated, shares.borrowed)
    assert abs(sum(parts) - 1) < 1e-9
    assert min(parts) >= 0
