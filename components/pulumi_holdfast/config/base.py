"""The base class of every section of the configuration: no unknown fields, immutable, names in camelCase."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema


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


@dataclass(frozen=True)
class Variant:
    """Chooses one of a union's sections by a function of the unparsed value."""

    of: Callable[[object], type[Section]]

    def _tag(self, value: object) -> str:
        # A default is an instance of the section, not a mapping.
        return type(value).__name__ if isinstance(value, Section) else self.of(value).__name__

    def __get_pydantic_core_schema__(self, union: type, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The union with each section tagged by its name."""
        sections = {part.__name__: handler.generate_schema(part) for part in get_args(union)}
        return core_schema.tagged_union_schema(sections, self._tag)
