"""One resource type as its SDK and its cloud describe it together."""

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.catalogue import Catalogue, Compute, Rules
from holdfast.simulator.clouds.schema.types import Kind, ResourceSchema


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    """A type's schema and rules, with what follows from both."""

    schema: ResourceSchema
    rules: Rules
    catalogue: Catalogue

    @property
    def token(self) -> str:
        """The type token."""
        return self.schema.token

    @property
    def name_property(self) -> str:
        """The input that holds the physical name; "" where the type has none."""
        if self.rules.name_property is not None:
            return self.rules.name_property
        return next((name for name in self.catalogue.name_properties if self._can_name(name)), "")

    @property
    def scopes(self) -> tuple[str, ...]:
        """The inputs within which a physical name is unique, in a fixed order."""
        if self.rules.unique_within is not None:
            return self.rules.unique_within
        return tuple(sorted(self.catalogue.scopes & set(self.schema.inputs) - {self.name_property}))

    @property
    def immutable(self) -> frozenset[str]:
        """The input paths that cannot change in place."""
        named = {self.name_property} - {""}
        return self.rules.immutable | named | set(self.scopes)

    @property
    def computed(self) -> Mapping[str, Compute]:
        """The outputs the cloud sets by a rule of its own."""
        common = {name: rule for name, rule in self.catalogue.common.items() if name in self.schema.outputs}
        return {**common, **self.rules.computed}

    def physical_name(self, values: Json) -> str:
        """Return the physical name among an object's values, "" for none."""
        name = values.get(self.name_property)
        return name if isinstance(name, str) else ""

    def scope(self, values: Json) -> tuple[str, ...]:
        """Return what an object's physical name is unique within."""
        return tuple(str(values[name]) for name in self.scopes if values.get(name) is not None)

    def _can_name(self, name: str) -> bool:
        found = self.schema.inputs.get(name)
        return found is not None and not found.required and found.kinds <= {Kind.STRING}
