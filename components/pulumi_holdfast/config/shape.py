"""The section on a shape: the requests, selectors, tolerations and common placement of one kind of job."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, ClassVar, Final, Literal, cast

from pydantic import Field, PlainSerializer, PlainValidator, ValidationInfo, field_validator

from pulumi_holdfast.config.base import Section
from pulumi_holdfast.config.fields import NAME_ALLOWED, DnsLabel, error_with_fix
from pulumi_holdfast.ladder.labels import EFA_RESOURCE, GPU_RESOURCE
from pulumi_holdfast.ladder.machines import Architecture
from pulumi_holdfast.ladder.quantities import (
    CPU_ALLOWED,
    MEMORY_ALLOWED,
    AmountError,
    format_cpu,
    format_memory,
    parse_cpu,
    parse_memory,
)
from pulumi_holdfast.ladder.reachability.shape import (
    LEAST,
    LONGEST_ACCELERATOR,
    MOST_ADAPTERS,
    MOST_DEVICES,
    MOST_GPUS,
    MOST_SELECTED,
    MOST_TOLERATIONS,
    WIDEST_GANG,
    Placement,
    Resources,
    Shape,
    format_device,
    parse_device,
)
from pulumi_holdfast.ladder.taints import Toleration


def _amount(value: object, parse: Callable[[str], int]) -> int:
    try:
        # YAML parses an unquoted 48 as a number.
        return parse(value if isinstance(value, str) else str(value))
    except AmountError as error:
        raise error_with_fix(error.fix) from None


Cpu = Annotated[
    int,
    PlainValidator(lambda value: _amount(value, parse_cpu), json_schema_input_type=int | float | str),
    PlainSerializer(format_cpu, return_type=str),
]
Memory = Annotated[
    int,
    PlainValidator(lambda value: _amount(value, parse_memory), json_schema_input_type=str),
    PlainSerializer(format_memory, return_type=str),
]

_DEVICES: Final = (
    f"a mapping of up to {MOST_DEVICES} resources to their amounts: a number, or bytes with their unit"
)


def _devices(value: object) -> Mapping[str, int]:
    if not isinstance(value, Mapping):
        raise error_with_fix("Write, for example, `devices: {ephemeral-storage: 200Gi}`.")
    given = cast("Mapping[object, object]", value)
    if len(given) > MOST_DEVICES:
        raise error_with_fix("Remove some of them.")
    return {str(name): _amount(given[name], partial(parse_device, str(name))) for name in given}


def _format_devices(devices: Mapping[str, int]) -> dict[str, str]:
    return {name: format_device(name, amount) for name, amount in devices.items()}


Devices = Annotated[
    Mapping[str, int],
    PlainValidator(_devices, json_schema_input_type=dict[str, int | str]),
    PlainSerializer(_format_devices, return_type=dict[str, str]),
]


class TolerationSection(Section):
    """A toleration as pods spell it, with the same defaults."""

    key: str = Field(default="", description="the key of a taint; none for any", examples=["team"])
    operator: Literal["Equal", "Exists"] = Field(
        default="Equal", description="Equal or Exists", examples=["Exists"]
    )
    value: str = Field(default="", description="the value of the taint", examples=["vision"])
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        default="",
        description="NoSchedule, PreferNoSchedule or NoExecute; none for any",
        examples=["NoSchedule"],
    )

    @field_validator("value")
    @classmethod
    def _of_equal(cls, value: str, info: ValidationInfo) -> str:
        if value and info.data.get("operator") == "Exists":
            raise error_with_fix("Remove it, or write operator: Equal.")
        return value

    def as_toleration(self) -> Toleration:
        """The toleration for the rules in `scheduling`."""
        return Toleration(
            key=self.key, value=None if self.operator == "Exists" else self.value, effect=self.effect
        )


class ShapeSection(Section):
    """One shape of job: a gang of pods that run together, each with these requests."""

    fixes: ClassVar[Mapping[str, str]] = {
        "requests": "Write cpu, memory and gpus of one pod.",
        GPU_RESOURCE: "Write gpus.",
        EFA_RESOURCE: "Write efa.",
        "parallelism": "Write pods.",
        "replicas": "Write pods.",
        "nodes": "Write pods: the machine decides how many of them fit on a node.",
        "nodeSelector": "Write selector.",
        "arch": "Write architectures, a list.",
        "ephemeralStorage": "Write devices: {ephemeral-storage: 200Gi}.",
    }

    name: DnsLabel = Field(description=NAME_ALLOWED, examples=["finetune"])
    pods: int = Field(
        default=1,
        ge=1,
        le=WIDEST_GANG,
        description=f"a whole number of pods that run together, 1 to {WIDEST_GANG}",
        examples=["4"],
    )
    cpu: Cpu = Field(default=LEAST.cpu_millis, description=CPU_ALLOWED, examples=["48"])
    memory: Memory = Field(default=LEAST.memory_mib, description=MEMORY_ALLOWED, examples=["512Gi"])
    gpus: int = Field(
        default=0,
        ge=0,
        le=MOST_GPUS,
        description=f"a whole number of GPUs of each pod, 0 to {MOST_GPUS}",
        examples=["8"],
    )
    efa: int = Field(
        default=0,
        ge=0,
        le=MOST_ADAPTERS,
        description=f"a whole number of Elastic Fabric Adapters of each pod, 0 to {MOST_ADAPTERS}",
        examples=["4"],
    )
    accelerator: str | None = Field(
        default=None,
        min_length=1,
        max_length=LONGEST_ACCELERATOR,
        description="a GPU model as in the cloud's machine table, such as a100",
        examples=["a100"],
    )
    devices: Devices = Field(
        default_factory=dict[str, int], description=_DEVICES, examples=["{ephemeral-storage: 200Gi}"]
    )
    selector: Mapping[str, str] = Field(
        default_factory=dict[str, str],
        max_length=MOST_SELECTED,
        description=f"a mapping of up to {MOST_SELECTED} node labels to their values",
        examples=["{kubernetes.io/arch: amd64}"],
    )
    tolerations: tuple[TolerationSection, ...] = Field(
        default=(),
        max_length=MOST_TOLERATIONS,
        description=f"a list of up to {MOST_TOLERATIONS} tolerations",
        examples=["[{key: team, operator: Exists}]"],
    )
    architectures: tuple[Architecture, ...] = Field(
        default=(), max_length=2, description="a list of amd64, arm64 or both", examples=["[amd64]"]
    )
    same_placement: Placement | None = Field(default=None, description="zone or hostGroup", examples=["zone"])

    def as_shape(self) -> Shape:
        """The shape for the rules in `scheduling`."""
        return Shape(
            name=self.name,
            pods=self.pods,
            requests=Resources(
                cpu_millis=self.cpu,
                memory_mib=self.memory,
                gpus=self.gpus,
                efa=self.efa,
                devices=dict(self.devices),
            ),
            accelerator=self.accelerator,
            selector=dict(self.selector),
            tolerations=tuple(each.as_toleration() for each in self.tolerations),
            architectures=self.architectures,
            same_placement=self.same_placement,
        )
