"""The shapes a resource type's properties have."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from holdfast.simulator.clouds.schema.source import SdkClass


class Kind(Enum):
    """The coarse kind of a value, named as error texts name it."""

    STRING = "a string"
    NUMBER = "a number"
    BOOL = "a boolean"
    LIST = "a list"
    MAP = "a map"
    OBJECT = "an object"
    ANY = "anything"


@dataclass(frozen=True, kw_only=True)
class PropertyType:
    """One shape a property may have: `item` for a list or map, `shape` for an object."""

    kind: Kind
    item: tuple["PropertyType", ...] = ()
    shape: SdkClass | None = None


@dataclass(frozen=True, kw_only=True)
class Property:
    """A property by its name on the wire. Any of `types` will do; `required` of an output: always set."""

    name: str
    types: tuple[PropertyType, ...]
    required: bool

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of value the property may have."""
        return frozenset(one.kind for one in self.types)


@dataclass(frozen=True, kw_only=True)
class ResourceSchema:
    """A resource type: its token, its input and output properties by name."""

    token: str
    package: str
    version: str
    inputs: Mapping[str, Property]
    outputs: Mapping[str, Property]
