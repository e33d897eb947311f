"""The operations on Helm releases: check, diff, plan, install, read, upgrade and uninstall.

`KubernetesProvider` calls `Releases` for the type `helm.v3.Release`; the helm program does the work.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pulumi.runtime.proto import provider_pb2

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.engine.diff import ChangeKind, PropertyChange, changes, diff_response
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.plugin import InitFailedError
from pulumi_holdfast.rehearsal.engine.values import (
    UNKNOWN,
    Properties,
    Secret,
    Unknown,
    Value,
    has_secret,
    has_unknown,
    reveal,
)
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_provider.apply import manager_for
from pulumi_holdfast.rehearsal.kubernetes_provider.helm import (
    FLAGS,
    OWNER_LABEL,
    Chart,
    ChartMirror,
    Helm,
    HelmError,
    HelmOptions,
    ReleaseRecord,
    install_arguments,
    last_complete,
    latest_release,
    revisions,
    rollback_arguments,
    template_arguments,
    uninstall_arguments,
    upgrade_arguments,
)
from pulumi_holdfast.rehearsal.kubernetes_provider.inputs import autoname, resource_names, to_properties
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import (
    GONE,
    Naming,
    Operation,
    ResourceState,
    namespace_and_name,
)
from pulumi_holdfast.rehearsal.kubernetes_provider.waits import namespace_problems

# ruff: noqa: ARG002 - objects and releases have the same operations


_DIGEST = "__chartDigest"

# These inputs identify a release.
_IDENTITY = ("name", "namespace")


@dataclass(frozen=True, kw_only=True)
class Releases:
    """Implements the operations on releases with a helm program and the charts of a mirror."""

    helm: Helm
    charts: ChartMirror
    faults: Faults

    def check(self, operation: Operation, news: Properties, olds: Properties, naming: Naming) -> Properties:
        """Return the complete inputs with the version of the chart."""
        namespace = operation.settings.default_namespace or "default"
        inputs = complete_release_inputs(news, olds, naming=naming, namespace=namespace)
        chart = chart_of(inputs, self.charts)
        return {**inputs, "version": chart.version} if chart else inputs

    def diff(
        self, operation: Operation, outputs: Properties, old: Properties, new: Properties
    ) -> provider_pb2.DiffResponse:
        """Compare inputs; an edited chart is a change, too."""
        chart = chart_of(new, self.charts)
        installed = outputs.get(_DIGEST)
        is_edited = chart is not None and installed is not None and chart.digest() != installed
        edited = [PropertyChange(path="chart", kind=ChangeKind.UPDATE)] if is_edited else []
        found = changes(old, new)
        more = [change for change in edited if change.path not in {each.path for each in found}]
        every = [*found, *more]
        return diff_response(every, replacing=[one for one in every if one.within(_IDENTITY)])

    def plan_create(self, operation: Operation, inputs: Properties) -> Properties:
        """Return the planned outputs. Raises RehearsalError if the chart cannot be rendered."""
        chart = chart_of(inputs, self.charts)
        if chart is not None and not has_unknown(inputs):
            version = operation.client.server_version()
            plan = plan_of(inputs, chart.path)
            self._run(operation, template_arguments(plan, kube_version=version), inputs)
        return {**inputs, "status": UNKNOWN, "resourceNames": UNKNOWN}

    def plan_update(self, operation: Operation, inputs: Properties, outputs: Properties) -> Properties:
        """Return the planned outputs of an upgrade."""
        return self.plan_create(operation, inputs)

    def create(self, operation: Operation, inputs: Properties) -> ResourceState:
        """Install a release, or continue the install of an interrupted run of this resource.

        Raises RehearsalError if another owner has a release with its name, and InitFailedError if the installed release
        is not ready.
        """
        chart = self._chart(inputs)
        owner = manager_for(operation.urn).rpartition("-")[2]
        plan = plan_of(inputs, chart.path, label=f"{OWNER_LABEL}={owner}")
        existing = revisions(operation.client, plan.namespace, plan.name)
        if any(revision.owner != owner for revision in existing):
            raise RehearsalError(
                f"release {plan.namespace}/{plan.name} already exists, and this resource did not create it; "
                "uninstall it, import it, or choose another name"
            )
        self.faults.before_create(operation.urn)
        self._install_or_upgrade(operation, plan, inputs, chart)
        self.faults.after_create(operation.urn)
        return self._outcome(operation, plan, inputs, chart)

    def update(
        self,
        operation: Operation,
        resource_id: str,
        inputs: Properties,
        outputs: Properties,
        ignored: Sequence[str],
    ) -> ResourceState:
        """Upgrade a release. Raises InitFailedError if it is not ready afterwards."""
        chart = self._chart(inputs)
        plan = plan_of(inputs, chart.path)
        self._install_or_upgrade(operation, plan, inputs, chart)
        return self._outcome(operation, plan, inputs, chart)

    def read(
        self, operation: Operation, resource_id: str, outputs: Properties, inputs: Properties
    ) -> ResourceState:
        """Return the live release, GONE if it does not exist; a failed release raises InitFailedError."""
        place, name = namespace_and_name(resource_id)
        namespace = place or "default"
        if not revisions(operation.client, namespace, name):
            return GONE
        record = latest_release(operation.client, namespace, name)
        now = live_release_inputs(inputs, record.metadata, record.values)
        seen = {**outputs_of(record, now), _DIGEST: outputs.get(_DIGEST)}
        status = str(record.metadata["status"])
        if status != "deployed":
            raise InitFailedError(
                resource_id=resource_id,
                properties=seen,
                inputs=now,
                reasons=[f"release {namespace}/{name} is {status}"],
            )
        return ResourceState(id=resource_id, outputs=seen, inputs=now)

    def remove(self, operation: Operation, resource_id: str, outputs: Properties) -> None:
        """Uninstall a release and wait for the removal of its objects. Does nothing for a missing release."""
        plan = plan_of(outputs, self.charts.directory)
        self._run(operation, uninstall_arguments(plan), {})

    def made(self, operation: Operation, inputs: Properties) -> str | None:
        """Return the id of the release that an interrupted create made, None if it made none."""
        name, namespace = inputs.get("name"), inputs.get("namespace")
        if not isinstance(name, str) or not isinstance(namespace, str):
            return None
        owner = manager_for(operation.urn).rpartition("-")[2]
        found = revisions(operation.client, namespace, name)
        is_ours = bool(found) and all(revision.owner == owner for revision in found)
        return f"{namespace}/{name}" if is_ours and not found[-1].is_interrupted else None

    def _chart(self, inputs: Properties) -> Chart:
        chart = chart_of(inputs, self.charts)
        if chart is None:
            raise RehearsalError("the chart of a release is unknown; set it to a known value")
        return chart

    def _install_or_upgrade(
        self, operation: Operation, plan: HelmOptions, inputs: Properties, chart: Chart
    ) -> None:
        self._undo_interrupted(operation, plan)
        exists = bool(revisions(operation.client, plan.namespace, plan.name))
        arguments = upgrade_arguments(plan) if exists else install_arguments(plan)
        try:
            self._run(operation, arguments, inputs)
        except HelmError as error:
            if not revisions(operation.client, plan.namespace, plan.name):
                raise
            record = latest_release(operation.client, plan.namespace, plan.name)
            raise InitFailedError(
                resource_id=f"{plan.namespace}/{plan.name}",
                properties={**outputs_of(record, inputs), _DIGEST: chart.digest()},
                inputs=inputs,
                reasons=[
                    f"release {plan.namespace}/{plan.name} is {record.metadata['status']}: {error}",
                    *namespace_problems(operation.client, plan.namespace),
                ],
            ) from error

    def _undo_interrupted(self, operation: Operation, plan: HelmOptions) -> None:
        """Undo a revision during which helm was killed, because helm refuses other changes until then.

        Only helm knows the changes of that revision, so deleting its record is not enough.
        """
        history = revisions(operation.client, plan.namespace, plan.name)
        if not history or not history[-1].is_interrupted:
            return
        whole = last_complete(history)
        undo = uninstall_arguments(plan) if whole is None else rollback_arguments(plan, revision=whole)
        self._run(operation, undo, {})

    def _outcome(
        self, operation: Operation, plan: HelmOptions, inputs: Properties, chart: Chart
    ) -> ResourceState:
        record = latest_release(operation.client, plan.namespace, plan.name)
        outputs = {**outputs_of(record, inputs), _DIGEST: chart.digest()}
        return ResourceState(id=f"{plan.namespace}/{plan.name}", outputs=outputs, inputs=inputs)

    def _run(self, operation: Operation, arguments: list[str], inputs: Properties) -> None:
        values = inputs.get("values")
        text = json.dumps(reveal(values)) if values is not None else "{}"
        try:
            self.helm.run(arguments, cancellation=operation.cancellation, values=text)
        except HelmError as error:
            raise HelmError(without_secrets(str(error), inputs)) from None


# The default of Helm, which the plugin writes into the state.
_TIMEOUT_SECONDS = 300
_KNOWN = {
    *FLAGS,
    *(
        "chart",
        "description",
        "maxHistory",
        "name",
        "namespace",
        "repositoryOpts",
        "timeout",
        "values",
        "version",
    ),
}
_UNSUPPORTED = frozenset(
    {"devel", "keyring", "lint", "postrender", "recreatePods", "replace", "valueYamlFiles", "verify"}
)


def complete_release_inputs(
    news: Properties, olds: Properties, *, naming: Naming, namespace: str
) -> dict[str, Value]:
    """Return the inputs of a release with name, namespace and timeout.

    Raises RehearsalError for an input that the simulator does not support.
    """
    given: dict[str, Value] = {name: value for name, value in news.items() if value is not None}
    for name, value in given.items():
        if name in _UNSUPPORTED and value not in (False, "", [], ()):
            raise RehearsalError(
                f"{naming.logical_name}: {name} is not simulated; remove it from the release"
            )
    inputs: dict[str, Value] = {name: value for name, value in given.items() if name in _KNOWN}
    if not inputs.get("chart"):
        raise RehearsalError(
            f"{naming.logical_name}: chart is not set; set it to a directory or an oci:// chart"
        )
    old_name = olds.get("name")
    inputs["name"] = inputs.get("name") or old_name or _new_name(naming)
    inputs["namespace"] = inputs.get("namespace") or namespace
    if inputs.get("skipAwait") is not True:
        inputs.setdefault("timeout", _TIMEOUT_SECONDS)
    return inputs


def chart_of(inputs: Properties, mirror: ChartMirror) -> Chart | None:
    """Return the chart of a release, None while its inputs are unknown. Raises RehearsalError."""
    repository = inputs.get("repositoryOpts")
    repo = repository.get("repo") if isinstance(repository, Mapping) else None
    named = (inputs.get("chart"), inputs.get("version"), repo)
    if any(isinstance(each, Unknown) for each in named):
        return None
    chart, version, repo = (reveal(each) for each in named)
    return mirror.find(
        str(chart), version=str(version) if version else None, repo=str(repo) if repo else None
    )


def plan_of(inputs: Properties, chart: Path, *, label: str | None = None) -> HelmOptions:
    """Return the helm options of a release with known inputs, without its values."""
    plain = {name: reveal(value) for name, value in inputs.items() if name in _KNOWN and name != "values"}
    timeout, history = plain.get("timeout"), plain.get("maxHistory")
    return HelmOptions(
        name=str(plain["name"]),
        namespace=str(plain["namespace"]),
        chart=chart,
        timeout=float(timeout) if isinstance(timeout, int | float) and timeout > 0 else None,
        description=str(plain["description"]) if plain.get("description") else None,
        max_history=int(history) if isinstance(history, int | float) else None,
        label=label,
        flags=frozenset(name for name in FLAGS if plain.get(name) is True),
    )


def _new_name(naming: Naming) -> str:
    return naming.proposed or autoname(naming.logical_name, naming.seed)


_SECRET_TEXT = "[secret]"  # noqa: S105 - a placeholder


def outputs_of(record: ReleaseRecord, inputs: Properties) -> dict[str, Value]:
    """Return the outputs of a release."""
    return {
        **inputs,
        "status": to_properties(record.metadata),
        "resourceNames": cast("Value", resource_names(record.manifest)),
        "__inputs": Secret(inputs),
    }


def live_release_inputs(inputs: Properties, shown: Json, values: JsonValue) -> Properties:
    """Return the inputs that correspond to the live release, whose values are `values`.

    For an import, without inputs, they are the metadata of the release.
    """
    if not inputs:
        imported = {name: shown.get(name) for name in ("chart", "name", "namespace", "version")}
        return to_properties({**imported, "values": values})
    now: dict[str, Value] = {**inputs, "version": str(shown.get("version"))}
    before = inputs.get("values")
    if reveal(before or {}) != values:
        found = to_properties(values) if isinstance(values, Mapping) else {}
        now["values"] = Secret(found) if has_secret(before) else found
    return now


def without_secrets(message: str, inputs: Properties) -> str:
    """Return a message with each secret text of the inputs replaced."""
    for text in sorted(_secret_texts(inputs), key=len, reverse=True):
        message = message.replace(text, _SECRET_TEXT)
    return message


def _secret_texts(value: Value, *, within: bool = False) -> set[str]:
    if isinstance(value, Secret):
        return _secret_texts(value.value, within=True)
    if isinstance(value, str):
        return {value} if within and value else set()
    parts: Sequence[Value] = ()
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, Sequence):
        parts = value
    return {text for part in parts for text in _secret_texts(part, within=within)}
