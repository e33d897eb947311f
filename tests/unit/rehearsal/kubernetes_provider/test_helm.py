"""Helm gets the options of a release; charts come from the mirror."""

import gzip
import json
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_provider.helm import (
    Chart,
    ChartMirror,
    HelmOptions,
    ReleaseRecord,
    Revision,
    install_arguments,
    last_complete,
    latest_release,
    template_arguments,
    uninstall_arguments,
    upgrade_arguments,
)

PLAN = HelmOptions(name="jobset", namespace="jobset-system", chart=Path("charts/jobset"), timeout=300)


def test_options_of_the_release_reach_helm() -> None:
    arguments = install_arguments(PLAN)
    assert arguments[:3] == ["install", "jobset", "charts/jobset"], "release and chart"
    assert "--wait=legacy" in arguments, "the next resource needs a ready operator"
    assert arguments[arguments.index("--timeout") + 1] == "300s", "otherwise the default of helm applies"
    for arguments in (install_arguments(PLAN), upgrade_arguments(PLAN)):
        assert "--server-side=false" in arguments, "changes by a controller would conflict with an upgrade"
        assert arguments[arguments.index("--values") + 1] == "-", "the process list would show secrets"
    shown = template_arguments(PLAN, kube_version="v1.36.3")
    hidden = template_arguments(replace(PLAN, flags=frozenset({"skipCrds"})), kube_version="v1.36.3")
    assert ("--include-crds" in shown, "--include-crds" in hidden) == (True, False), "skipCrds"
    plan = replace(PLAN, flags=frozenset({"createNamespace"}), label="a=b")
    assert "--create-namespace" in install_arguments(plan), "the namespace does not exist yet"
    assert "--create-namespace" not in upgrade_arguments(plan), "helm refuses the flag in an upgrade"
    assert "--ignore-not-found" in uninstall_arguments(PLAN), "a second destroy would fail"


def test_skip_await_disables_the_wait_unless_atomic() -> None:
    for arguments in (install_arguments, upgrade_arguments, uninstall_arguments):
        skipped = replace(PLAN, flags=frozenset({"skipAwait"}))
        assert "--wait=legacy" not in arguments(skipped), "skipAwait"
        atomic = replace(PLAN, flags=frozenset({"skipAwait", "atomic"}))
        assert "--wait=legacy" in arguments(atomic), "atomic needs it"


OCI = "oci://registry.example/charts/jobset"


@pytest.fixture
def mirror(tmp_path: Path) -> ChartMirror:
    """A mirror with one chart, jobset 0.12.0."""
    (tmp_path / "charts" / "jobset").mkdir(parents=True)
    described = "apiVersion: v2\nname: jobset\nversion: 0.12.0\n"
    (tmp_path / "charts" / "jobset" / "Chart.yaml").write_text(described)
    return ChartMirror(tmp_path / "charts", base=tmp_path)


def test_chart_is_found_by_each_reference(mirror: ChartMirror) -> None:
    for chart, version, repo in (
        (OCI, "0.12.0", None),
        (OCI, "v0.12.0", None),
        (OCI, None, None),
        ("jobset", "0.12.0", "https://charts.example"),
        ("charts/jobset", None, None),
    ):
        found = mirror.find(chart, version=version, repo=repo)
        assert (found.name, found.version) == ("jobset", "0.12.0"), "another chart would be installed"


def test_other_version_and_missing_chart_are_refused(mirror: ChartMirror, tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match=r"version 0\.11\.0, but .* has version 0\.12\.0"):
        mirror.find(OCI, version="0.11.0", repo=None)
    for chart, repo in (("oci://x/kueue", None), ("kueue", "https://x"), ("kueue", None)):
        with pytest.raises(RehearsalError, match="jobset"):
            mirror.find(chart, version=None, repo=repo)
    with pytest.raises(RehearsalError, match=r"Chart\.yaml"):
        Chart.at(tmp_path)


def test_edited_chart_has_another_digest(mirror: ChartMirror) -> None:
    chart = mirror.find(OCI, version=None, repo=None)
    before = chart.digest()
    (chart.path / "templates").mkdir()
    (chart.path / "templates" / "a.yaml").write_text("kind: ConfigMap\n")
    assert chart.digest() != before, "an edited chart must cause an upgrade"
    (chart.path / "templates" / "a.yaml").rename(chart.path / "a.yaml")
    assert chart.digest() != before, "a moved file changes the rendered objects"


@pytest.mark.parametrize(
    ("statuses", "complete"),
    [
        ([], None),
        (["pending-install"], None),
        (["deployed", "pending-upgrade"], 1),
        (["superseded", "deployed", "pending-rollback"], 2),
        (["failed", "pending-upgrade"], 1),
    ],
)
def test_last_complete_revision_is_found(statuses: list[str], complete: int | None) -> None:
    history = [Revision(number=at, status=status) for at, status in enumerate(statuses, start=1)]
    assert last_complete(history) == complete, "a rollback needs a complete revision"


class FakeCluster:
    """An API server with the Secrets of two revisions, as Helm stores them."""

    def list(self, *_: object, **__: object) -> list[Json]:
        return [self._secret(1, "superseded"), self._secret(2, "deployed")]

    def _secret(self, number: int, status: str) -> Json:
        release = {
            "name": "jobset",
            "namespace": "n",
            "version": number,
            "info": {"status": status},
            "chart": {"metadata": {"name": "jobset", "version": "0.12.0", "appVersion": "v0.12.0"}},
            "config": {"replicas": number},
            "manifest": "kind: Pod",
        }
        data = b64encode(b64encode(gzip.compress(json.dumps(release).encode()))).decode()
        return {"metadata": {"labels": {"version": str(number), "status": status}}, "data": {"release": data}}


def test_latest_revision_is_read_from_its_secret() -> None:
    record = latest_release(cast("KubeClient", FakeCluster()), "n", "jobset")
    named = {"chart": "jobset", "name": "jobset", "namespace": "n"}
    versions = {"appVersion": "v0.12.0", "version": "0.12.0"}
    metadata: Json = {**named, **versions, "revision": 2, "status": "deployed"}
    expected = ReleaseRecord(metadata=metadata, values={"replicas": 2}, manifest="kind: Pod")
    assert record == expected, "the record equals the output of `helm get`"
