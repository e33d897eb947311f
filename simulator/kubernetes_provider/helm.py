"""The helm command: its arguments, and running it.

The plugin has Helm 3 inside; here Helm 4 is told to work as that does: objects are patched by the client, not
applied by the server (so that a controller which writes its own certificates into a webhook configuration does not
conflict with the next upgrade), and waits look at workloads alone, not at every object's conditions.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.errors import Cancellation


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
