import pickle

from dgdr_job.catalog.errors import CatalogError, Reason, Unsupported


def test_a_refusal_says_its_reason_and_message() -> None:
    refusal = Unsupported(Reason.NO_DATA, "h200_sxm has no vllm data of version '1'")
    assert isinstance(refusal, CatalogError)
    assert str(refusal) == "NoData: h200_sxm has no vllm data of version '1'"
    assert (refusal.reason, refusal.message) == ("NoData", "h200_sxm has no vllm data of version '1'")


def test_a_refusal_survives_the_way_between_processes() -> None:
    again = pickle.loads(pickle.dumps(Unsupported(Reason.INVALID_DATA, "nan")))  # noqa: S301  (our own bytes)
    assert (again.reason, again.message) == (Reason.INVALID_DATA, "nan")
