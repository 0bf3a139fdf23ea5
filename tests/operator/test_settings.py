import pytest
from dgdr_operator.settings import JobSettings, Settings, SettingsError, settings_from

IMAGES = {"DGDR_SWEEPER_IMAGE": "s:1", "DGDR_PUBLISHER_IMAGE": "p:1"}


def test_images_are_enough() -> None:
    found = settings_from(IMAGES | {"DGDR_IDENTITY": "me"})

    assert found == Settings(job=JobSettings(sweeper_image="s:1", publisher_image="p:1"), identity="me")


def test_everything_can_be_given() -> None:
    found = settings_from(
        IMAGES
        | {
            "DGDR_NAMESPACES": "a, b",
            "DGDR_SEARCHES_PER_NAMESPACE": "2",
            "DGDR_LEADER_ELECTION": "false",
            "DGDR_SWEEPER_RESOURCES": '{"requests": {"cpu": "8"}}',
            "DGDR_WORKSPACE_MEDIUM": "Disk",
            "DGDR_IMAGE_PULL_SECRETS": "x y",
        }
    )

    assert (found.namespaces, found.searches_per_namespace, found.leader_election) == (("a", "b"), 2, False)
    assert found.job.sweeper_resources == {"requests": {"cpu": "8"}}
    assert (found.job.workspace_medium, found.job.image_pull_secrets) == ("", ("x", "y"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DGDR_SWEEPER_IMAGE", ""),
        ("DGDR_WORKERS", "0"),
        ("DGDR_SEARCHES_IN_CLUSTER", "-1"),
        ("DGDR_RELIST_S", "never"),
        ("DGDR_LEADER_ELECTION", "yes"),
        ("DGDR_SWEEPER_RESOURCES", "[]"),
        ("DGDR_SWEEPER_RESOURCES", "{"),
        ("DGDR_WORKSPACE_MEDIUM", "ram"),
        ("DGDR_LOG_LEVEL", "LOUD"),
    ],
)
def test_what_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        settings_from(IMAGES | {name: value})
