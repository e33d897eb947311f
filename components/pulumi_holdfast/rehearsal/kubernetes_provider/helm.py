"""Runs the helm program, reads the revisions of its releases, and finds charts in a local mirror.

The plugin contains Helm 3. The options here make Helm 4 behave the same: the client patches objects instead of
applying them on the server (a controller that writes certificates into its webhook configuration then causes no
conflict), and waits check only workloads.
"""

import gzip
import hashlib
import json
import os
import subprocess
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import yaml

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_client.errors import Cancellation


class HelmError(RehearsalError):
    """Helm failed; the message is the error of Helm."""


# The boolean inputs of a release, and the flags of helm that they set.
_ON_INSTALL: Final = {
    "createNamespace": "--create-namespace",
    "disableWebhooks": "--no-hooks",
    "skipCrds": "--skip-crds",
}
_ON_UPGRADE: Final = {
    "cleanupOnFail": "--cleanup-on-fail",
    "disableCRDHooks": "--no-hooks",
    "forceUpdate": "--force-replace",
    "resetValues": "--reset-values",
    "reuseValues": "--reuse-values",
}
_ON_BOTH: Final = {
    "atomic": "--rollback-on-failure",
    "dependencyUpdate": "--dependency-update",
    "disableOpenapiValidation": "--disable-openapi-validation",
    "renderSubchartNotes": "--render-subchart-notes",
}
FLAGS: Final = frozenset({*_ON_INSTALL, *_ON_UPGRADE, *_ON_BOTH, "skipAwait", "waitForJobs"})


@dataclass(frozen=True, kw_only=True)
class HelmOptions:
    """The options of a release; `flags` are its boolean inputs that are set.

    `timeout` is in seconds; None is the default of Helm.
    """

    name: str
    namespace: str
    chart: Path
    timeout: float | None = None
    flags: frozenset[str] = frozenset()
    description: str | None = None
    max_history: int | None = None
    label: str | None = None

    def of(self, flags: Mapping[str, str]) -> list[str]:
        """Return the flags of helm for the inputs that are set."""
        return [flag for name, flag in flags.items() if name in self.flags]


def install_arguments(plan: HelmOptions) -> list[str]:
    """Return the arguments that install a release with values from standard input."""
    return [
        *("install", plan.name, str(plan.chart), "--server-side=false"),
        *_common(plan),
        *plan.of(_ON_INSTALL),
        *_option("--labels", plan.label),
    ]


def upgrade_arguments(plan: HelmOptions) -> list[str]:
    """Return the arguments that upgrade a release with values from standard input."""
    return [
        *("upgrade", plan.name, str(plan.chart), "--server-side=false"),
        *_common(plan),
        *plan.of(_ON_UPGRADE),
        *("--history-max", str(plan.max_history or 0)),
    ]


def template_arguments(plan: HelmOptions, *, kube_version: str) -> list[str]:
    """Return the arguments that render a release for a Kubernetes version without changing the cluster."""
    return [
        *("template", plan.name, str(plan.chart), "--namespace", plan.namespace, "--values", "-"),
        *("--kube-version", kube_version),
        *([] if "skipCrds" in plan.flags else ["--include-crds"]),
        *plan.of({"dependencyUpdate": _ON_BOTH["dependencyUpdate"]}),
    ]


def uninstall_arguments(plan: HelmOptions) -> list[str]:
    """Return the arguments that remove a release if it exists."""
    return [*("uninstall", plan.name, "--namespace", plan.namespace, "--ignore-not-found"), *_waits(plan)]


def rollback_arguments(plan: HelmOptions, *, revision: int) -> list[str]:
    """Return the arguments that roll a release back to a revision."""
    return [
        *("rollback", plan.name, str(revision), "--namespace", plan.namespace, "--server-side=false"),
        *("--history-max", str(plan.max_history or 0)),
    ]


def _common(plan: HelmOptions) -> list[str]:
    for_jobs = "waitForJobs" in plan.flags and "skipAwait" not in plan.flags
    return [
        *("--namespace", plan.namespace, "--values", "-"),
        *_waits(plan),
        *(["--wait-for-jobs"] if for_jobs else []),
        *plan.of(_ON_BOTH),
        *_option("--description", plan.description),
    ]


def _waits(plan: HelmOptions) -> list[str]:
    timeout = [] if plan.timeout is None else ["--timeout", f"{plan.timeout:.0f}s"]
    skips = "skipAwait" in plan.flags and "atomic" not in plan.flags
    return [*([] if skips else ["--wait=legacy"]), *timeout]


def _option(name: str, value: str | None) -> list[str]:
    return [name, value] if value else []


@dataclass(frozen=True, kw_only=True)
class Helm:
    """The helm program for one control plane."""

    program: Path
    kubeconfig: Path

    def run(self, arguments: Sequence[str], *, cancellation: Cancellation, values: str = "") -> str:
        """Run helm with `values` on standard input and return its output.

        Raises HelmError with the message of Helm. A cancellation terminates helm, which marks the release failed.
        """
        process = subprocess.Popen(
            [str(self.program), *arguments, "--kubeconfig", str(self.kubeconfig)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment(os.environ),
        )
        with process, cancellation.running(process.terminate):
            output, errors = process.communicate(values)
        cancellation.refuse_when_cancelled()
        if process.returncode != 0:
            raise HelmError(_reason(errors) or f"helm {arguments[0]} exited with code {process.returncode}")
        return output

    def _environment(self, base: Mapping[str, str]) -> dict[str, str]:
        # Plugins, repositories and defaults of the user must not affect the release.
        inherited = {name: value for name, value in base.items() if not name.startswith("HELM_")}
        home = self.kubeconfig.parent / "helm"
        homes = {f"HELM_{name.upper()}_HOME": str(home / name) for name in ("cache", "config", "data")}
        return {**inherited, **homes}


def _reason(errors: str) -> str:
    """Return the error of Helm without log lines."""
    _, found, reason = errors.rpartition("Error: ")
    return reason.strip() if found else errors.strip()


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart in a directory."""

    path: Path
    name: str
    version: str

    @classmethod
    def at(cls, path: Path) -> "Chart":
        """Read the Chart.yaml of a directory. Raises RehearsalError if the directory is no chart."""
        try:
            described = cast("Json", yaml.safe_load((path / "Chart.yaml").read_text(encoding="utf-8")))
            return cls(path=path, name=str(described["name"]), version=str(described["version"]))
        except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
            raise RehearsalError(f"{path} is no chart: its Chart.yaml cannot be read ({error})") from error

    def digest(self) -> str:
        """Return a hash of the files of the chart, which detects an edited chart."""
        digest = hashlib.sha256()
        for file in sorted(each for each in self.path.rglob("*") if each.is_file()):
            content = file.read_bytes()
            digest.update(f"{file.relative_to(self.path)}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()


@dataclass(frozen=True)
class ChartMirror:
    """A directory with one chart per subdirectory; relative chart paths of a program are relative to `base`."""

    directory: Path
    base: Path = Path()

    def find(self, chart: str, *, version: str | None, repo: str | None) -> Chart:
        """Return a chart by its directory, its oci:// reference or its name in `repo`.

        The last two come from the mirror. Raises RehearsalError if the mirror does not have this chart and version.
        """
        if not repo and not chart.startswith("oci://"):
            return self._local(chart)
        name = chart.rstrip("/").rpartition("/")[2]
        path = self.directory / name
        if not path.is_dir():
            raise RehearsalError(
                f"chart {chart!r} is not in the mirror: {self.directory} has {self._names()}. Add {name} to it, or "
                "set chart to a directory"
            )
        found = Chart.at(path)
        if version and version.removeprefix("v") != found.version.removeprefix("v"):
            raise RehearsalError(
                f"chart {chart!r}: the program sets version {version}, but {path} has version {found.version}; set "
                "that version, or mirror the other one"
            )
        return found

    def _local(self, chart: str) -> Chart:
        path = self.base / chart
        if not path.is_dir():
            raise RehearsalError(
                f"chart {chart!r} is neither a directory ({path} does not exist), nor an oci:// reference, nor a "
                f"name with a repo; set one of them. Charts in {self.directory}: {self._names()}"
            )
        return Chart.at(path)

    def _names(self) -> str:
        found = sorted(each.name for each in self.directory.glob("*") if each.is_dir())
        return ", ".join(found) or "nothing: run `make tools`"


OWNER_LABEL = "holdfast.dev/release-owner"


@dataclass(frozen=True, kw_only=True)
class Revision:
    """A release revision: its number, its status (deployed, failed, pending-install, …) and its resource."""

    number: int
    status: str
    owner: str | None = None

    @property
    def is_interrupted(self) -> bool:
        """Whether helm was killed during this revision; helm refuses other changes until it is undone."""
        return self.status.startswith("pending-")


def revisions(client: KubeClient, namespace: str, name: str) -> Sequence[Revision]:
    """Return the revisions of a release, oldest first; none if it does not exist."""
    found = map(_revision, _release_secrets(client, namespace, name))
    return sorted(found, key=lambda revision: revision.number)


def last_complete(history: Sequence[Revision]) -> int | None:
    """Return the number of the last revision that helm completed, None if there is none."""
    return next((each.number for each in reversed(history) if not each.is_interrupted), None)


def _revision(secret: Json) -> Revision:
    labels = mapping(mapping(secret.get("metadata")).get("labels"))
    owner = labels.get(OWNER_LABEL)
    return Revision(
        number=int(str(labels.get("version", "0"))),
        status=str(labels.get("status")),
        owner=str(owner) if owner else None,
    )


@dataclass(frozen=True, kw_only=True)
class ReleaseRecord:
    """The latest revision of a release: its metadata, the values that the user set, and its manifest."""

    metadata: Json
    values: JsonValue
    manifest: str


def latest_release(client: KubeClient, namespace: str, name: str) -> ReleaseRecord:
    """Return the latest revision of a release from its Secret, which is much faster than `helm get`."""
    secret = max(_release_secrets(client, namespace, name), key=lambda found: _revision(found).number)
    encoded = b64decode(b64decode(str(mapping(secret.get("data"))["release"])))
    release = cast("Json", json.loads(gzip.decompress(encoded)))
    chart = mapping(mapping(release.get("chart")).get("metadata"))
    return ReleaseRecord(
        metadata={
            "appVersion": chart.get("appVersion"),
            "chart": chart.get("name"),
            "name": release.get("name"),
            "namespace": release.get("namespace"),
            "revision": release.get("version"),
            "status": mapping(release.get("info")).get("status"),
            "version": chart.get("version"),
        },
        values=release.get("config") or {},
        manifest=str(release.get("manifest") or ""),
    )


def _release_secrets(client: KubeClient, namespace: str, name: str) -> Sequence[Json]:
    return client.list("v1", "Secret", namespace=namespace, label_selector=f"owner=helm,name={name}")
