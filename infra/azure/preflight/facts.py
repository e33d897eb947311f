"""A subscription, as its credentials see it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Subscription:
    """Where a stack is made and who makes it, each by its id.

    `deployer` is whoever runs `pulumi`, as Entra ID knows them: a user, or the principal of a pipeline. `signed_in_to` is
    the tenant they are in.
    """

    subscription_id: str
    tenant_id: str
    deployer: str
    signed_in_to: str
