"""Operations of the stand-in kubernetes provider on one resource, without an engine."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation
from holdfast.simulator.kubernetes_provider.objects import Objects
from holdfast.simulator.kubernetes_provider.operation import Naming, Operation, Outcome, Resources, Settings
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.values import Properties, Value

WAIT_SECONDS = 60.0


@dataclass(kw_only=True)
class Resource:
    """One resource of a stack, as the engine knows it between operations."""

    client: KubeClient
    token: str
    name: str = "one"
    resources: Resources = field(default_factory=lambda: Objects(faults=Faults()))
    settings: Settings = field(default_factory=Settings)
    timeout: float = WAIT_SECONDS
    cancellation: Cancellation = field(default_factory=Cancellation)
    id: str = ""
    inputs: Properties = field(default_factory=dict[str, Value])
    outputs: Properties = field(default_factory=dict[str, Value])

    @property
    def operation(self) -> Operation:
        """A call about this resource."""
        return Operation(
            urn=f"urn:pulumi:test::test::{self.token}::{self.name}",
            token=self.token,
            client=self.client.under(self.cancellation),
            cancellation=self.cancellation,
            settings=self.settings,
            custom_timeout=self.timeout,
        )

    def check(self, inputs: Properties) -> Properties:
        """Return the inputs, complete."""
        return self.resources.check(self.operation, inputs, self.inputs, Naming(logical_name=self.name))

    def plan(self, inputs: Properties) -> Properties:
        """Return the outputs a create or update would give."""
        checked = self.check(inputs)
        if self.id:
            return self.resources.plan_update(self.operation, checked, self.outputs)
        return self.resources.plan_create(self.operation, checked)

    def create(self, inputs: Properties) -> Outcome:
        """Create it."""
        return self._keep(self.resources.create(self.operation, self.check(inputs)))

    def update(self, inputs: Properties, ignored: Sequence[str] = ()) -> Outcome:
        """Update it."""
        checked = self.check(inputs)
        return self._keep(self.resources.update(self.operation, self.id, checked, self.outputs, ignored))

    def refresh(self) -> Outcome:
        """Read it back."""
        return self._keep(self.resources.read(self.operation, self.id, self.outputs, self.inputs))

    def changed_paths(self, inputs: Properties) -> set[str]:
        """Return where new inputs differ from those applied last."""
        checked = self.check(inputs)
        return set(self.resources.diff(self.operation, self.outputs, self.inputs, checked).detailedDiff)

    def delete(self) -> None:
        """Delete it."""
        self.resources.remove(self.operation, self.id, self.outputs)

    def _keep(self, outcome: Outcome) -> Outcome:
        self.id, self.inputs, self.outputs = outcome.id, outcome.inputs, outcome.outputs
        return outcome
