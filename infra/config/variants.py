"""Fields that hold one of several sections, told apart by what stands in them."""

from collections.abc import Callable

from pydantic import Discriminator

from holdfast.infra.config.section import Section


def told_by(variant_of: Callable[[object], type[Section]]) -> Discriminator:
    """Tell variants, each tagged with the name of its class, apart by a function of the value as it is written."""

    def tag(value: object) -> str:
        # A default is no mapping but the model itself.
        return type(value).__name__ if isinstance(value, Section) else variant_of(value).__name__

    return Discriminator(tag)
