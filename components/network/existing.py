"""A network that is there already: the user's own."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ExistingNetwork:
    """A VPC and subnets known by their ids.

    Nothing in it is made, changed or tagged: whoever owns it sees to its routes, to an S3 gateway endpoint, without
    which checkpoints pay for NAT, and, where it has no way to the internet, to the interface endpoints.
    """

    vpc_id: str
    private_subnet_ids: tuple[str, ...]
