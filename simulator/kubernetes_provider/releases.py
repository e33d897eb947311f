"""Helm releases, as the engine handles them: made by the helm program."""

# ruff: noqa: ARG002 - the parameters are those of Resources

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pulumi.runtime.proto import provider_pb2

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.applying import manager_for
from holdfast.simulator.kubernetes_provider.charts import Chart, ChartMirror
from holdfast.simulator.kubernetes_provider.helm import (
    Helm,
    HelmError,
    Plan,
    get_arguments,
    install_arguments,
    rollback_arguments,
    template_arguments,
    uninstall_arguments,
    upgrade_arguments,
)
from holdfast.simulator.kubernetes_provider.inputs import Naming
from holdfast.simulator.kubernetes_provider.operation import GONE, Operation, Outcome, place_of
from holdfast.simulator.kubernetes_provider.release_history import OWNER_LABEL, last_whole, revisions
from holdfast.simulator.kubernetes_provider.release_inputs import chart_of, checked_release, plan_of
from holdfast.simulator.kubernetes_provider.release_state import inputs_now, outputs_of, without_secrets
from holdfast.simulator.kubernetes_provider.troubles import namespace_troubles
from holdfast.simulator.pulumi.diff_answers import diff_response
from holdfast.simulator.pulumi.diffing import Change, ChangeKind, changes
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.serving import InitFailedError
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Value, has_unknown, reveal

_DIGEST = "__chartDigest"

# Helm knows a release by these two.
_IDENTITY = ("name", "namespace")


@dataclass(frozen=True, kw_only=True)
class Releases:
    """Makes releases with a helm program, from the charts of a mirror."""

    helm: Helm
    charts: ChartMirror
    faults: Faults

    def check(self, operation: Operation, news: Properties, olds: Properties, naming: Naming) -> Properties:
        """Return a release's inputs, complete; its version is that of the chart found."""
        namespace = operation.settings.default_namespace or "default"
        inputs = checked_release(news, olds, naming=naming, namespace=namespace)
        chart = chart_of(inputs, self.charts)
        return {**inputs, "version": chart.version} if chart else inputs

    def diff(
        self, operation: Operation, outputs: Properties, old: Properties, new: Properties
    ) -> provider_pb2.DiffResponse:
        """Compare inputs; a chart whose files changed is a change as well."""
        chart = chart_of(new, self.charts)
        installed = outputs.get(_DIGEST)
        is_edited = chart is not None and installed is not None and chart.digest() != installed
        edited = [Change(path="chart", kind=ChangeKind.UPDATE)] if is_edited else []
        found = changes(old, new)
        more = [change for change in edited if change.path not in {each.path for each in found}]
        every = [*found, *more]
        return diff_response(every, replacing=[one for one in every if one.within(_IDENTITY)])

    def plan_create(self, operation: Operation, inputs: Properties) -> Properties:
        """Return the outputs a release will have. Raises RehearsalError where its chart cannot be rendered."""
        chart = chart_of(inputs, self.charts)
        if chart is not None and not has_unknown(inputs):
            version = operation.client.server_version()
            plan = plan_of(inputs, chart.path)
            self._run(operation, template_arguments(plan, kube_version=version), inputs)
        return {**inputs, "status": UNKNOWN, "resourceNames": UNKNOWN}

    def plan_update(self, operation: Operation, inputs: Properties, outputs: Properties) -> Properties:
        """Return the outputs a release will have after an upgrade."""
        return self.plan_create(operation, inputs)

    def create(self, operation: Operation, inputs: Properties) -> Outcome:
        """Install a release; what an interrupted run of this same resource left of it is taken up.

        Raises RehearsalError when somebody else has a release of its name, InitFailedError when it is
        installed but does not work.
        """
        chart = self._chart(inputs)
        owner = manager_for(operation.urn).rpartition("-")[2]
        plan = plan_of(inputs, chart.path, label=f"{OWNER_LABEL}={owner}")
        existing = revisions(operation.client, plan.namespace, plan.name)
        if any(revision.owner != owner for revision in existing):
            raise RehearsalError(
                f"release {plan.namespace}/{plan.name} exists already, and this resource did not make it; "
                "uninstall it, import it, or choose another name"
            )
        self.faults.before_create(operation.urn)
        self._make(operation, plan, inputs, chart)
        self.faults.after_create(operation.urn)
        return self._outcome(operation, plan, inputs, chart)

    def update(
        self,
        operation: Operation,
        resource_id: str,
        inputs: Properties,
        outputs: Properties,
        ignored: Sequence[str],
    ) -> Outcome:
        """Upgrade a release. Raises InitFailedError when it does not work afterwards."""
        chart = self._chart(inputs)
        plan = plan_of(inputs, chart.path)
        self._make(operation, plan, inputs, chart)
        return self._outcome(operation, plan, inputs, chart)

    def read(
        self, operation: Operation, resource_id: str, outputs: Properties, inputs: Properties
    ) -> Outcome:
        """Return a release as it is now, GONE when it is not there; a failed one raises InitFailedError."""
        place, name = place_of(resource_id)
        namespace = place or "default"
        if not revisions(operation.client, namespace, name):
            return GONE
        shown = self._shown(operation, name=name, namespace=namespace)
        live = cast("JsonValue", json.loads(self._get(operation, "values", name=name, namespace=namespace)))
        now = inputs_now(inputs, shown, live or {})
        seen = {**self._state(operation, shown, now), _DIGEST: outputs.get(_DIGEST)}
        status = str(shown.get("status"))
        if status != "deployed":
            raise InitFailedError(
                resource_id=resource_id,
                properties=seen,
                inputs=now,
                reasons=[f"release {namespace}/{name} is {status}"],
            )
        return Outcome(id=resource_id, outputs=seen, inputs=now)

    def remove(self, operation: Operation, resource_id: str, outputs: Properties) -> None:
        """Uninstall a release and wait until its objects are gone; one that is not there is."""
        plan = plan_of(outputs, self.charts.directory)
        self._run(operation, uninstall_arguments(plan), {})

    def made(self, operation: Operation, inputs: Properties) -> str | None:
        """Return the id of the release that an interrupted create did make, None if it made none."""
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
            raise RehearsalError("the chart of a release must be known when it is made")
        return chart

    def _make(self, operation: Operation, plan: Plan, inputs: Properties, chart: Chart) -> None:
        self._clear_up(operation, plan)
        exists = bool(revisions(operation.client, plan.namespace, plan.name))
        arguments = upgrade_arguments(plan) if exists else install_arguments(plan)
        try:
            self._run(operation, arguments, inputs)
        except HelmError as error:
            if not revisions(operation.client, plan.namespace, plan.name):
                raise
            shown = self._shown(operation, name=plan.name, namespace=plan.namespace)
            raise InitFailedError(
                resource_id=f"{plan.namespace}/{plan.name}",
                properties={**self._state(operation, shown, inputs), _DIGEST: chart.digest()},
                inputs=inputs,
                reasons=[
                    f"release {plan.namespace}/{plan.name} is {shown.get('status')}: {error}",
                    *namespace_troubles(operation.client, plan.namespace),
                ],
            ) from error

    def _clear_up(self, operation: Operation, plan: Plan) -> None:
        """Undo a revision in the middle of which helm was killed: it lets nothing else be done before.

        Only helm knows what that revision had changed already; merely to forget its record would leave it.
        """
        history = revisions(operation.client, plan.namespace, plan.name)
        if not history or not history[-1].is_interrupted:
            return
        whole = last_whole(history)
        undo = uninstall_arguments(plan) if whole is None else rollback_arguments(plan, revision=whole)
        self._run(operation, undo, {})

    def _outcome(self, operation: Operation, plan: Plan, inputs: Properties, chart: Chart) -> Outcome:
        shown = self._shown(operation, name=plan.name, namespace=plan.namespace)
        outputs = {**self._state(operation, shown, inputs), _DIGEST: chart.digest()}
        return Outcome(id=f"{plan.namespace}/{plan.name}", outputs=outputs, inputs=inputs)

    def _state(self, operation: Operation, shown: Json, inputs: Properties) -> dict[str, Value]:
        name, namespace = str(shown["name"]), str(shown["namespace"])
        manifest = self._get(operation, "manifest", name=name, namespace=namespace)
        return outputs_of(shown, inputs, manifest=manifest)

    def _shown(self, operation: Operation, *, name: str, namespace: str) -> Json:
        return cast("Json", json.loads(self._get(operation, "metadata", name=name, namespace=namespace)))

    def _get(self, operation: Operation, what: str, *, name: str, namespace: str) -> str:
        arguments = get_arguments(what, name=name, namespace=namespace)
        return self.helm.run(arguments, cancellation=operation.cancellation)

    def _run(self, operation: Operation, arguments: list[str], inputs: Properties) -> None:
        values = inputs.get("values")
        text = json.dumps(reveal(values)) if values is not None else "{}"
        try:
            self.helm.run(arguments, cancellation=operation.cancellation, values=text)
        except HelmError as error:
            raise HelmError(without_secrets(str(error), inputs)) from None
