"""Images of upstream registries, cached in the account's own ECR registry when nodes pull them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, Input, ResourceOptions
from pulumi_aws.ecr import PullThroughCacheRule
from pulumi_aws.iam import RolePolicy

from pulumi_holdfast.aws.policy_documents import Place, Statement, document


@dataclass(frozen=True, kw_only=True)
class CachedRegistry:
    """An upstream registry by its host, and the prefix of the repositories that cache its images.

    `credential_arn` is the secret with the credentials of the upstream, None for a registry that needs none.
    """

    prefix: str
    upstream: str
    credential_arn: Input[str] | None = None


@dataclass(frozen=True, kw_only=True)
class PullThroughCacheArgs:
    """Where the caches are, and the name of the role of the nodes that pull."""

    place: Place
    registries: Sequence[CachedRegistry]
    node_role: Input[str]


class PullThroughCache(ComponentResource):
    """Pull through caches of ECR (`holdfast:index:PullThroughCache`).

    Creates a rule for each upstream, and a policy of the nodes' role: a node that pulls an image for the first time makes
    ECR create the repository and import the image. ECR encrypts the repositories with its own key and keeps their tags
    mutable, so that the cache can follow its upstream. They stay when the rules are deleted.

    Output `addresses`: for each prefix what replaces the upstream's host in the address of an image.
    """

    addresses: Mapping[str, str]

    def __init__(self, name: str, args: PullThroughCacheArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:PullThroughCache", name, None, opts)
        for registry in args.registries:
            PullThroughCacheRule(
                f"{name}-{registry.prefix}",
                ecr_repository_prefix=registry.prefix,
                upstream_registry_url=registry.upstream,
                credential_arn=registry.credential_arn,
                opts=ResourceOptions(parent=self),
            )
        prefixes = [registry.prefix for registry in args.registries]
        RolePolicy(
            f"{name}-nodes",
            role=args.node_role,
            policy=first_pull_policy(args.place, prefixes),
            opts=ResourceOptions(parent=self),
        )
        self.addresses = {prefix: f"{args.place.registry()}/{prefix}" for prefix in prefixes}
        self.register_outputs({"addresses": self.addresses})


def first_pull_policy(place: Place, prefixes: Sequence[str]) -> str:
    """Return what the first pull of an image needs besides the permissions of every pull."""
    return document(
        Statement(
            sid="FirstPull",
            actions=["ecr:BatchImportUpstreamImage", "ecr:CreateRepository"],
            resources=[place.repositories(prefix) for prefix in prefixes],
        )
    )
