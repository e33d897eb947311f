"""Types of single values on every cloud: a block of addresses, a registry of images."""

import re
from ipaddress import AddressValueError, IPv4Network, NetmaskValueError
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from holdfast.infra.config.fields import refusal

CIDR_ALLOWED: Final = "a block of IPv4 addresses, such as 203.0.113.0/24"

_IMAGES: Final = re.compile(
    r"(?=[^/]*[.:])[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*", re.ASCII
)


def _cidr(text: str) -> str:
    try:
        network = IPv4Network(text, strict=False)
    except (AddressValueError, NetmaskValueError):
        raise refusal("Write an IPv4 address and, behind a slash, the bits that are fixed of it.") from None
    # Written with a netmask, without one, or with bits beyond it: clouds take one way of writing a block.
    if str(network) != text:
        raise refusal(f'Write "{network}".')
    return text


def _image_source(text: str) -> str:
    bare = re.sub(r"^[a-z]+://", "", text).rstrip("/")
    if bare != text and _IMAGES.fullmatch(bare):
        raise refusal(f'Write "{bare}".')
    if not _IMAGES.fullmatch(text):
        raise refusal("Write a registry's host and, where its images lie deeper, their path.")
    return text


Cidr = Annotated[str, AfterValidator(_cidr)]
ImageSource = Annotated[str, Field(min_length=1), AfterValidator(_image_source)]
