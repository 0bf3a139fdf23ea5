"""The chart writes the operator's settings, and the operator reads them: all, and no other."""

from dataclasses import asdict, fields
from typing import Any

import pytest
from dgdr_operator.settings import PREFIX, JobSettings, Settings, settings_from

from tests.chart.rendering import CASES, Helm, environment

IMAGES = {"DGDR_SWEEPER_IMAGE": "dgdr-sweeper:0.1.0", "DGDR_PUBLISHER_IMAGE": "dgdr-publisher:0.1.0"}


class Recorder(dict[str, str]):
    """An environment that notes what is read."""

    def __init__(self) -> None:
        super().__init__(IMAGES)
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


@pytest.mark.parametrize("case", CASES)
def test_every_variable_is_read_and_every_setting_is_written(chart: Helm, case: str) -> None:
    recorder = Recorder()
    settings_from(recorder)
    names = {field.name for kind in (JobSettings, Settings) for field in fields(kind)} - {"job"}

    assert set(environment(chart.objects(values=CASES[case]))) == recorder.asked
    assert recorder.asked == {PREFIX + name.upper() for name in names}


def test_the_defaults_of_the_chart_are_those_of_the_operator(chart: Helm) -> None:
    given = environment(chart.objects())
    expected = settings_from(IMAGES | {"DGDR_IDENTITY": "metadata.name", "DGDR_LEASE_NAMESPACE": "dgdr-system"})

    assert settings_from(given) == expected


def test_every_value_arrives(chart: Helm) -> None:
    found = settings_from(environment(chart.objects(values=CASES["everything"])))

    assert asdict(found) == {
        "job": {
            "sweeper_image": "registry.example.com:5000/mirror/team/sweeper:1.2",
            "publisher_image": "registry.example.com:5000/mirror/team/publisher:latest",
            "publisher_cluster_role": "sweeps-publisher",
            "image_pull_policy": "Always",
            "image_pull_secrets": ("registry", "mirror"),
            "sweeper_resources": {"requests": {"cpu": 8, "memory": "8Gi"}, "limits": {"memory": "16Gi"}},
            "publisher_resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
            "workspace_medium": "Memory",
            "workspace_size": "512Mi",
            "active_deadline_s": 12345678,
            "ttl_s": 0,
            "grace_period_s": 120,
        },
        "namespaces": (),
        "searches_per_namespace": 2,
        "searches_in_cluster": 10,
        "workers": 8,
        "relist_s": 60.0,
        "http_port": 8080,
        "leader_election": True,
        "lease_namespace": "dgdr-system",
        "lease_name": "sweeps-operator",
        "lease_s": 30,
        "identity": "metadata.name",
        "log_level": "DEBUG",
    }


def test_the_served_namespaces_arrive(chart: Helm) -> None:
    found = settings_from(environment(chart.objects(values=CASES["namespaced"])))

    assert found.namespaces == ("team-a", "team-b")
