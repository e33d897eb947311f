"""The series for promtool cover every alert."""

from pulumi_holdfast.kubernetes.monitoring import ALERTS
from tests.soak.alerts.series import CASES, file_of_rules, file_of_tests


def test_every_alert_has_series_that_fire_it_and_series_that_do_not() -> None:
    names = {alert.name for alert in ALERTS}
    for fires in (True, False):
        found = {case.alert for case in CASES if (case.labels is not None) is fires}
        assert found == names, (
            f"{names - found} have no series with which they {'fire' if fires else 'stay silent'}"
        )


def test_an_expected_alert_has_the_values_of_its_labels_in_its_texts() -> None:
    assert "{{" in str(file_of_rules())
    assert "{{" not in str(file_of_tests("rules.yaml"))
