from typing import Any

from dgdr_kube.resource import POD
from dgdr_operator.store import Kept, Store


def pod(name: str, version: int, uid: str = "u", **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "uid": uid, "resourceVersion": str(version), "labels": labels}
    return {"metadata": metadata | {"managedFields": [{"manager": "x"}]}}


def store() -> Store:
    return Store({POD: Kept(lambda value: str(value["metadata"]["labels"].get("of", "")))})


def versions(found: Store) -> list[str]:
    return [value["metadata"]["resourceVersion"] for value in found.all(POD)]


def test_old_news_changes_nothing() -> None:
    made = store()
    made.put(POD, pod("a", 9))
    made.put(POD, pod("a", 5))

    assert versions(made) == ["9"]


def test_who_owns_which_field_is_not_kept() -> None:
    made = store()
    made.put(POD, pod("a", 9))

    assert "managedFields" not in made.all(POD)[0]["metadata"]


def test_objects_are_found_by_their_index_also_after_it_changed() -> None:
    made = store()
    made.put(POD, pod("b", 1, of="x"))
    made.put(POD, pod("a", 2, of="x"))
    assert [value["metadata"]["name"] for value in made.by(POD, "x")] == ["a", "b"]
    made.put(POD, pod("a", 3, of="y"))
    assert [value["metadata"]["name"] for value in made.by(POD, "x")] == ["b"]
    assert [value["metadata"]["name"] for value in made.by(POD, "y")] == ["a"]


def test_a_deletion_counts_for_its_object_alone() -> None:
    made = store()
    made.put(POD, pod("a", 5, uid="new"))
    made.drop(POD, "n", "a", "old")
    assert versions(made) == ["5"]
    made.drop(POD, "n", "a", "new")
    assert versions(made) == []


def test_what_is_gone_does_not_come_back_with_an_older_list() -> None:
    made = store()
    made.put(POD, pod("a", 5))
    made.drop(POD, "n", "a", "u")
    made.replace(POD, [pod("a", 5)], "5")

    assert versions(made) == []


def test_a_list_removes_ghosts_and_keeps_what_is_newer_than_itself() -> None:
    made = store()
    made.put(POD, pod("ghost", 3, uid="1"))
    made.put(POD, pod("young", 11, uid="2"))
    gone = made.replace(POD, [pod("listed", 4, uid="3")], "10")

    assert [value["metadata"]["name"] for value in gone] == ["ghost"]
    assert sorted(value["metadata"]["name"] for value in made.all(POD)) == ["listed", "young"]
