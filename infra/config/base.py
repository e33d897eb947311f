"""The base class of every section of the configuration: no unknown fields, immutable, names in camelCase."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Discriminator
from pydantic.alias_generators import to_camel


class Section(BaseModel):
    """A mapping of the configuration with a fixed set of fields.

    A field's description says what is allowed, and its first example shows how to write it. Problems quote both.
    """

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)

    #: Names from other tools that users try here, each with the sentence that says what to write instead.
    fixes: ClassVar[Mapping[str, str]] = MappingProxyType({})

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The names of the fields in the configuration."""
        return tuple(info.alias or name for name, info in cls.model_fields.items())


def discriminated_by(variant_of: Callable[[object], type[Section]]) -> Discriminator:
    """Choose one of several sections, tagged with their class names, by a function of the unparsed value."""

    def tag(value: object) -> str:
        # A default is an instance of the section, not a mapping.
        return type(value).__name__ if isinstance(value, Section) else variant_of(value).__name__

    return Discriminator(tag)
