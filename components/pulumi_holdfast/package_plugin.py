"""Serves the training clusters to every language of Pulumi: the plugin behind the package `holdfast`.

The SDK's own host infers a schema from annotations: it refuses unions, drops unknown fields in silence, and shows tracebacks. This
one has the schema of the sections (`holdfast schemas`), and reports each problem at the property that has it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import pulumi
from pulumi.output import UNKNOWN, Unknown
from pulumi.provider import ConstructResult, Provider, main

from pulumi_holdfast import __version__
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.training_clusters import COMPONENTS, Arguments, ArgumentsError, Value

if TYPE_CHECKING:
    from pulumi import Inputs, ResourceOptions
    from pulumi.errors import InputPropertyErrorDetails

SCHEMA: Final = Path(__file__).with_name("package_schema.json")


class TrainingClusterProvider(Provider):
    """Constructs the components of the package."""

    def __init__(self) -> None:
        super().__init__(__version__, SCHEMA.read_text("utf-8"))

    def construct(
        self, name: str, resource_type: str, inputs: Inputs, options: ResourceOptions | None = None
    ) -> ConstructResult:
        """Make a component. Raises InputPropertiesError, which the engine shows as one message for each property."""
        component = COMPONENTS.get(resource_type)
        if component is None:
            raise pulumi.InputPropertiesError(
                f"{format_value(resource_type)} is no component of this package; write one of {', '.join(COMPONENTS)}"
            )
        try:
            made = component(name, cast("Arguments", _value(inputs)), options)
        except ArgumentsError as error:
            raise pulumi.InputPropertiesError(f"{name} has wrong arguments", _details(error)) from None
        return ConstructResult(made.urn, made.outputs.by_name())


def _details(error: ArgumentsError) -> list[InputPropertyErrorDetails]:
    return [
        {
            "property_path": problem.field,
            "reason": f"got {problem.value}; allowed: {problem.allowed}. {problem.fix}",
        }
        for problem in error.problems
    ]


def _value(value: object) -> Value:
    """A property as a stack file has it; an unknown one, or one of another resource, as an Output."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Unknown):
        return pulumi.Output.from_input(cast("object", UNKNOWN))
    if isinstance(value, Mapping):
        return {key: _value(each) for key, each in cast("Mapping[str, object]", value).items()}
    if isinstance(value, list):
        return [_value(each) for each in cast("list[object]", value)]
    return cast("Value", value)


def serve() -> None:
    """Serve the package to the engine, which starts this process and names its address."""
    main(TrainingClusterProvider(), sys.argv[1:])
