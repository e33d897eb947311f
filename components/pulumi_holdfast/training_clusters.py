"""Training clusters for people's own programs, in Python and, through `package_plugin`, in every language of Pulumi.

A cluster's arguments are the sections of a stack file by the same names, and a wrong one is the same message. Where an id, a name,
a key or a principal of another package may come in, they take Outputs, whose values are checked once an update knows them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, cast

import pulumi
from pydantic import Field

from pulumi_holdfast.clouds import CLOUDS
from pulumi_holdfast.config.cidrs import placeholder_address_problems
from pulumi_holdfast.config.fields import Section
from pulumi_holdfast.config.loader import PLATFORM, parse
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.ladder import is_dns_label
from pulumi_holdfast.stack_program import check_budget

if TYPE_CHECKING:
    from pulumi_holdfast.clouds import Platform, Settings
    from pulumi_holdfast.kubernetes.outputs import ClusterOutputs
    from pulumi_holdfast.ladder.json import Json

#: The clouds' longest names have room for it, and for what the engine adds to them.
_LONGEST_NAME: Final = 20

#: A value of an argument: of a stack file, or an Output in its place.
Value: TypeAlias = (
    "str | int | float | bool | Sequence[Value] | Mapping[str, Value] | pulumi.Output[object] | None"
)
Arguments: TypeAlias = Mapping[str, Value]


class ArgumentsError(pulumi.RunError):
    """Wrong arguments of a component: a line for each problem, which the engine shows without a traceback."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, problems)))


class ClusterArguments(Section):
    """The arguments of a cluster beside the sections of a stack file."""

    environment: str | None = Field(
        default=None,
        min_length=1,
        description="in the names, labels and tags of everything in the cloud: no other cluster of the account has it. By default the "
        "names of the stack and of the component",
        examples=["research"],
    )

    def settings(self) -> dict[str, str | None]:
        """The values that a stack file has beside the document."""
        return {}


class Tokens(Section):
    """Who gets tokens of the cluster from the AWS CLI."""

    profile: str | None = Field(default=None, min_length=1, description="a profile of the AWS CLI")
    role_arn: str | None = Field(default=None, description="the role that it assumes")


class EksArguments(ClusterArguments):
    """The arguments of an EKS training cluster beside the sections of a stack file."""

    fixes: ClassVar[Mapping[str, str]] = {"region": "Leave it out: it is that of the AWS provider."}

    tokens: Tokens = Field(
        default_factory=Tokens,
        description="who gets tokens of the cluster from the AWS CLI, if its provider has a profile or assumes a role",
        examples=["{profile: research}"],
    )

    def settings(self) -> dict[str, str | None]:
        """The values that a stack file has beside the document."""
        role = self.tokens.role_arn
        roles = None if role is None else json.dumps([{"roleArn": role}])
        return {"aws:profile": self.tokens.profile, "aws:assumeRoles": roles}


class AksArguments(ClusterArguments):
    """The arguments of an AKS training cluster beside the sections of a stack file."""

    location: str = Field(
        description="the location of the cluster, which the Azure provider does not tell", examples=["eastus"]
    )

    def settings(self) -> dict[str, str | None]:
        """The values that a stack file has beside the document."""
        return {"azure-native:location": self.location}


def _given(value: object, given: Callable[[pulumi.Output[object]], object]) -> object:
    """A value with each Output in it replaced by what `given` makes of it."""
    if isinstance(value, pulumi.Output):
        return given(cast("pulumi.Output[object]", value))
    if isinstance(value, Mapping):
        return {key: _given(each, given) for key, each in cast("Mapping[str, object]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_given(each, given) for each in cast("Sequence[object]", value)]
    return value


class _TrainingCluster(pulumi.ComponentResource):
    """A training cluster as a part of a program; its parts are below the component of its cloud."""

    cloud: ClassVar[str]
    arguments: ClassVar[type[ClusterArguments]] = ClusterArguments

    outputs: ClusterOutputs

    def __init__(self, name: str, args: Arguments, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(f"holdfast:index:{type(self).__name__}", name, None, opts)
        try:
            self.outputs = self._build(name, args)
        except ConfigError as error:
            raise ArgumentsError([_in_component(each) for each in error.problems]) from None
        self.register_outputs(self.outputs.by_name())

    def _build(self, name: str, args: Arguments) -> ClusterOutputs:
        if len(name) > _LONGEST_NAME or not is_dns_label(name):
            raise ConfigError.of(
                field=name,
                value=f"a name of {len(name)} characters",
                allowed=f"up to {_LONGEST_NAME} lower-case letters, digits and hyphens: it begins the names of everything in the cluster",
                fix="Write a shorter name, such as research.",
            )
        cloud, own = CLOUDS[self.cloud], self.arguments
        beside = {key: value for key, value in args.items() if key in own.field_names() or key in own.fixes}
        arguments = parse(own, cast("Json", beside))
        document = {"cloud": self.cloud, **{key: args[key] for key in args if key not in beside}}
        settings = {**cloud.provider_settings(self), **arguments.settings()}
        outputs = list[pulumi.Output[object]]()
        _given(document, lambda each: outputs.append(each))
        if outputs:
            checked = pulumi.Output.from_input(document).apply(lambda known: self._check(known, settings))
            document = _given(
                document, lambda each: pulumi.Output.all(each, checked).apply(lambda pair: pair[0])
            )
        found = cast("Json", document)

        def check(platform: Platform) -> None:
            problems = list(placeholder_address_problems(found, PLATFORM))
            if problems:
                raise ConfigError(problems)
            check_budget(platform)

        built = cloud.build(
            found,
            settings,
            arguments.environment or f"{pulumi.get_stack()}-{name}",
            check,
            name=name,
            # A stack of Holdfast's own program has the cluster at its root: there it stays the same cluster.
            opts=pulumi.ResourceOptions(
                parent=self, aliases=[pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)]
            ),
        )
        return cast("ClusterOutputs", built)

    def _check(self, known: object, settings: Settings) -> bool:
        """Check the document again with the values that this update knows. Raises ArgumentsError."""
        try:
            CLOUDS[self.cloud].read(cast("Json", known), settings)
        except ConfigError as error:
            raise ArgumentsError([_in_component(each) for each in error.problems]) from None
        return True


def _in_component(problem: Problem) -> Problem:
    """A problem of a stack file as one of a component, which has the fields of the document itself."""
    return Problem(problem.field.removeprefix(f"{PLATFORM}."), problem.value, problem.allowed, problem.fix)


class EksTrainingCluster(_TrainingCluster):
    """A training cluster on EKS (`holdfast:index:EksTrainingCluster`), in the region of its AWS provider."""

    cloud = "aws"
    arguments = EksArguments


class AksTrainingCluster(_TrainingCluster):
    """A training cluster on AKS (`holdfast:index:AksTrainingCluster`), in the subscription of its Azure provider."""

    cloud = "azure"
    arguments = AksArguments


class GkeTrainingCluster(_TrainingCluster):
    """A training cluster on GKE (`holdfast:index:GkeTrainingCluster`), in the project and region of its Google Cloud provider."""

    cloud = "gcp"


#: The components of the package by the tokens of their types.
COMPONENTS: Final[Mapping[str, type[_TrainingCluster]]] = {
    f"holdfast:index:{each.__name__}": each
    for each in (EksTrainingCluster, AksTrainingCluster, GkeTrainingCluster)
}
