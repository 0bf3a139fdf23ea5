"""Each cap on worker counts is enforced alone."""

from dgdr_job.space.limits import Limits


def test_the_budget_leaves_what_the_others_do_not_take() -> None:
    limits = Limits(gpu_budget=16)
    assert limits.most_workers("prefill", 4, 3) == 3
    assert limits.most_workers("decode", 4, 13) == 0
    assert limits.most_workers("decode", 4, 99) == 0


def test_caps_of_a_role_bind_it_alone() -> None:
    limits = Limits(gpu_budget=64, max_prefill_gpus=9, max_decode_workers=3)
    assert limits.most_workers("prefill", 2, 1) == 4
    assert limits.most_workers("decode", 2, 1) == 3
    assert Limits(gpu_budget=64, max_prefill_workers=5).most_workers("prefill", 2, 1) == 5
    assert Limits(gpu_budget=64, max_decode_gpus=7).most_workers("decode", 2, 1) == 3
