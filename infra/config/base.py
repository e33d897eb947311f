"""What every section of the configuration is: closed, frozen, spelled in camelCase."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Discriminator
from pydantic.alias_generators import to_camel


class Section(BaseModel):
    """A mapping in the configuration with a fixed set of fields.

    Each field's description says what is allowed there and its first example how it is written: the texts of
    refusals are made of them.
    """

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)

    #: Names from elsewhere that users try here, and the sentence which says what to write instead.
    fixes: ClassVar[Mapping[str, str]] = MappingProxyType({})

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The fields as users spell them."""
        return tuple(info.alias or name for name, info in cls.model_fields.items())


def discriminated_by(variant_of: Callable[[object], type[Section]]) -> Discriminator:
    """Tell variants, each tagged with the name of its class, apart by a function of the value as it is written."""

    def tag(value: object) -> str:
        # A default is no mapping but the model itself.
        return type(value).__name__ if isinstance(value, Section) else variant_of(value).__name__

    return Discriminator(tag)
