"""The helm command: its arguments, and running it.

The plugin has Helm 3 inside; here Helm 4 is told to work as that does: objects are patched by the client, not
applied by the server (so that a controller which writes its own certificates into a webhook configuration does not
conflict with the next upgrade), and waits look at workloads alone, not at every object's conditions.
"""

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import yaml

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.errors import Cancellation

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json
from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import mapping


class HelmError(RehearsalError):
    """Helm's own words on why it failed."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A release as helm is to make it. `timeout` is in seconds; None leaves it to helm."""

    name: str
    namespace: str
    chart: Path
    timeout: float | None = None
    create_namespace: bool = False
    skip_crds: bool = False
    skip_await: bool = False
    wait_for_jobs: bool = False
    atomic: bool = False
    cleanup_on_fail: bool = False
    force_update: bool = False
    reset_values: bool = False
    reuse_values: bool = False
    dependency_update: bool = False
    disable_install_hooks: bool = False
    disable_upgrade_hooks: bool = False
    disable_openapi_validation: bool = False
    render_subchart_notes: bool = False
    description: str | None = None
    max_history: int | None = None
    label: str | None = None


def install_arguments(plan: Plan) -> list[str]:
    """Return the arguments that install a release; values come on standard input."""
    return [
        *("install", plan.name, str(plan.chart), "--server-side=false"),
        *_common(plan),
        *_flag("--create-namespace", plan.create_namespace),
        *_flag("--skip-crds", plan.skip_crds),
        *_flag("--no-hooks", plan.disable_install_hooks),
        *_option("--labels", plan.label),
    ]


def upgrade_arguments(plan: Plan) -> list[str]:
    """Return the arguments that upgrade a release; values come on standard input."""
    return [
        *("upgrade", plan.name, str(plan.chart), "--server-side=false"),
        *_common(plan),
        *_flag("--cleanup-on-fail", plan.cleanup_on_fail),
        *_flag("--force-replace", plan.force_update),
        *_flag("--reset-values", plan.reset_values),
        *_flag("--reuse-values", plan.reuse_values),
        *_flag("--no-hooks", plan.disable_upgrade_hooks),
        *("--history-max", str(plan.max_history or 0)),
    ]


def template_arguments(plan: Plan, *, kube_version: str) -> list[str]:
    """Return the arguments that render a release without touching the cluster, for its Kubernetes version."""
    return [
        *("template", plan.name, str(plan.chart), "--namespace", plan.namespace, "--values", "-"),
        *("--kube-version", kube_version),
        *_flag("--include-crds", not plan.skip_crds),
        *_flag("--dependency-update", plan.dependency_update),
    ]


def uninstall_arguments(plan: Plan) -> list[str]:
    """Return the arguments that remove a release, if it is there."""
    return [
        *("uninstall", plan.name, "--namespace", plan.namespace, "--ignore-not-found"),
        *_waits(plan),
    ]


def rollback_arguments(plan: Plan, *, revision: int) -> list[str]:
    """Return the arguments that bring a release back to one of its revisions."""
    return [
        *("rollback", plan.name, str(revision), "--namespace", plan.namespace, "--server-side=false"),
        *("--history-max", str(plan.max_history or 0)),
    ]


def get_arguments(what: str, *, name: str, namespace: str) -> list[str]:
    """Return the arguments that show a release's `metadata` or `values`, as JSON, or its `manifest`."""
    form = [] if what == "manifest" else ["--output", "json"]
    return ["get", what, name, "--namespace", namespace, *form]


def _common(plan: Plan) -> list[str]:
    return [
        *("--namespace", plan.namespace, "--values", "-"),
        *_waits(plan),
        *_flag("--wait-for-jobs", plan.wait_for_jobs and not plan.skip_await),
        *_flag("--rollback-on-failure", plan.atomic),
        *_flag("--dependency-update", plan.dependency_update),
        *_flag("--disable-openapi-validation", plan.disable_openapi_validation),
        *_flag("--render-subchart-notes", plan.render_subchart_notes),
        *_option("--description", plan.description),
    ]


def _waits(plan: Plan) -> list[str]:
    timeout = [] if plan.timeout is None else ["--timeout", f"{plan.timeout:.0f}s"]
    return [*_flag("--wait=legacy", plan.atomic or not plan.skip_await), *timeout]


def _flag(name: str, is_set: bool) -> list[str]:
    return [name] if is_set else []


def _option(name: str, value: str | None) -> list[str]:
    return [name, value] if value else []


@dataclass(frozen=True, kw_only=True)
class Helm:
    """The helm program, bound to one control plane."""

    program: Path
    kubeconfig: Path

    def run(self, arguments: Sequence[str], *, cancellation: Cancellation, values: str = "") -> str:
        """Run helm with `values` on standard input and return what it printed.

        Raises HelmError with helm's own message. A cancellation ends helm, which then marks the release failed.
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
            raise HelmError(_reason(errors) or f"helm {arguments[0]} ended with {process.returncode}")
        return output

    def _environment(self, base: Mapping[str, str]) -> dict[str, str]:
        # The user's plugins, repositories and defaults must not have a say in a rehearsal.
        kept = {name: value for name, value in base.items() if not name.startswith("HELM_")}
        home = self.kubeconfig.parent / "helm"
        places = {f"HELM_{name.upper()}_HOME": str(home / name) for name in ("cache", "config", "data")}
        return {**kept, **places}


def _reason(errors: str) -> str:
    """Return helm's error without its log lines."""
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
        """Read a chart's own description. Raises RehearsalError for a directory that is no chart."""
        try:
            described = cast("Json", yaml.safe_load((path / "Chart.yaml").read_text(encoding="utf-8")))
            return cls(path=path, name=str(described["name"]), version=str(described["version"]))
        except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
            raise RehearsalError(f"{path} is no chart: its Chart.yaml cannot be read ({error})") from error

    def digest(self) -> str:
        """Return a hash of the chart's files, which tells an edited chart from the one installed."""
        digest = hashlib.sha256()
        for file in sorted(each for each in self.path.rglob("*") if each.is_file()):
            content = file.read_bytes()
            digest.update(f"{file.relative_to(self.path)}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()


@dataclass(frozen=True)
class ChartMirror:
    """A directory with one chart per subdirectory.

    `base` is what a program's relative chart paths are relative to; by default the current directory.
    """

    directory: Path
    base: Path = Path()

    def find(self, chart: str, *, version: str | None, repo: str | None) -> Chart:
        """Return the chart that `chart` names: a directory, an oci:// reference, or a name in `repo`.

        The latter two are taken from the mirror. Raises RehearsalError when the mirror has no such chart, or
        another version of it.
        """
        if not repo and not chart.startswith("oci://"):
            return self._local(chart)
        name = chart.rstrip("/").rpartition("/")[2]
        path = self.directory / name
        if not path.is_dir():
            raise RehearsalError(
                f"chart {chart!r} is not mirrored: {self.directory} has {self._names()}. Add {name} to it, or "
                "name a directory"
            )
        found = Chart.at(path)
        if version and version.removeprefix("v") != found.version.removeprefix("v"):
            raise RehearsalError(
                f"chart {chart!r}: version {version} is asked for, and {path} is version {found.version}; ask "
                "for that one, or mirror the other"
            )
        return found

    def _local(self, chart: str) -> Chart:
        path = self.base / chart
        if not path.is_dir():
            raise RehearsalError(
                f"chart {chart!r} is neither a directory (looked for {path}), nor an oci:// reference, nor a "
                f"name beside a repo; mirrored in {self.directory}: {self._names()}"
            )
        return Chart.at(path)

    def _names(self) -> str:
        found = sorted(each.name for each in self.directory.glob("*") if each.is_dir())
        return ", ".join(found) or "nothing: run `make tools`"


OWNER_LABEL = "holdfast.dev/release-owner"


@dataclass(frozen=True, kw_only=True)
class Revision:
    """One revision: its number, its status (deployed, failed, pending-install, …), whose resource made it."""

    number: int
    status: str
    owner: str | None = None

    @property
    def is_interrupted(self) -> bool:
        """Whether helm was killed while it was at it: until somebody clears it up, helm refuses to go on."""
        return self.status.startswith("pending-")


def revisions(client: KubeClient, namespace: str, name: str) -> Sequence[Revision]:
    """Return the revisions of a release, oldest first; none when there is no such release."""
    found = client.list("v1", "Secret", namespace=namespace, label_selector=f"owner=helm,name={name}")
    return sorted((_revision(secret) for secret in found), key=lambda revision: revision.number)


def last_complete(history: Sequence[Revision]) -> int | None:
    """Return the number of the last revision that helm brought to an end, None when there is none."""
    return next((each.number for each in reversed(history) if not each.is_interrupted), None)


def _revision(secret: Json) -> Revision:
    labels = mapping(mapping(secret.get("metadata")).get("labels"))
    owner = labels.get(OWNER_LABEL)
    return Revision(
        number=int(str(labels.get("version", "0"))),
        status=str(labels.get("status")),
        owner=str(owner) if owner else None,
    )
