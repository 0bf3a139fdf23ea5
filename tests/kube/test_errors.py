import json

import pytest
from dgdr_kube.errors import (
    AlreadyExists,
    FieldConflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    Retryable,
    Stale,
    TooLarge,
    error_of,
)


def answer(message: str, reason: str = "", *causes: str) -> str:
    details = {"causes": [{"reason": cause} for cause in causes]}
    return json.dumps({"kind": "Status", "message": message, "reason": reason, "details": details})


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, answer("not found", "NotFound"), NotFound),
        (410, answer("expired", "Expired"), NotFound),
        (409, answer("exists", "AlreadyExists"), AlreadyExists),
        (409, answer("the object has been modified", "Conflict"), Stale),
        (409, answer("Apply failed with 1 conflict", "Conflict", "FieldManagerConflict"), FieldConflict),
        (401, answer("Unauthorized", "Unauthorized"), Forbidden),
        (403, answer("exceeded quota", "Forbidden"), Forbidden),
        (400, answer("strict decoding error", "BadRequest"), Invalid),
        (422, answer("spec.x: Too long", "Invalid"), Invalid),
        (413, "Request entity too large: limit is 3145728", TooLarge),
        (500, answer("etcdserver: request is too large"), TooLarge),
        (500, answer("rpc error: code = ResourceExhausted desc = trying to send message larger than max"), TooLarge),
        (500, answer("failed to create typed patch object: .spec.x: field not declared in schema"), Invalid),
        (500, answer("duplicate entries for key [type=A]"), Invalid),
        (500, answer("etcdserver: leader changed"), Retryable),
        (429, answer("too many requests", "TooManyRequests"), Retryable),
        (503, "<html>upstream</html>", Retryable),
        (504, answer("timed out", "Timeout"), Retryable),
    ],
)
def test_an_answer_means_one_kind_of_error(status: int, body: str, kind: type[KubeError]) -> None:
    found = error_of("PATCH /x", status, body)

    assert type(found) is kind
    assert found.status == status
    assert found.asked == "PATCH /x"


def test_the_words_of_the_server_are_kept() -> None:
    found = error_of("POST /x", 403, answer("exceeded quota: q", "Forbidden"))

    assert (found.message, found.reason) == ("exceeded quota: q", "Forbidden")
    assert str(found) == "POST /x: 403 exceeded quota: q"


@pytest.mark.parametrize("body", ["", "[]", "null", '{"kind": "Status"}', '{"kind": "Status", "details": 1}'])
def test_an_answer_of_another_form_is_an_error_too(body: str) -> None:
    assert isinstance(error_of("GET /x", 409, body), Stale)


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), (None, None), ("Fri, 31 Dec 1999 23:59:59 GMT", None)])
def test_the_server_may_ask_to_wait(header: str | None, seconds: float | None) -> None:
    found = error_of("POST /x", 429, answer("too many requests", "TooManyRequests"), retry_after=header)

    assert found.retry_after_s == seconds
