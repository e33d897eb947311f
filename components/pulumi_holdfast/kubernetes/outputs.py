"""The outputs of a training cluster: the contract for programs that refer to its stack with a StackReference.

A TrainingCluster has them as `ClusterOutputs`, the program exports them, and `stack_outputs` reads them in another program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from pulumi_holdfast.kubernetes.fallback_policy import facts_object
from pulumi_holdfast.ladder.json import mapping, sequence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input, Output, StackReference

    from pulumi_holdfast.config.namespace import NamespaceSection
    from pulumi_holdfast.ladder.json import Json, JsonValue
    from pulumi_holdfast.ladder.pools import Pool
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary

#: The names of the outputs of every stack. A release may add one; it renames and removes none without a new major version.
OUTPUTS: Final = (
    "cluster",
    "kubeconfig",
    "issuer",
    "checkpoints",
    "checkpointUris",
    "pools",
    "ladders",
    "identities",
    "network",
)

#: The name of the output of a stack whose checkpoints have KMS keys: their ARNs by training namespace, for other stacks of the account.
CHECKPOINT_KEYS: Final = "checkpointKeys"

#: The name of the output of a stack on Azure with the resource ID and the tenant of its storage account, for other stacks of the tenant.
CHECKPOINT_ACCOUNT: Final = "checkpointAccount"

#: The name of the output of a stack whose cloud exchanges the tokens of the clusters from which it accepts jobs: how, by their issuers.
TOKEN_EXCHANGES: Final = "tokenExchanges"  # noqa: S105 - a name

#: The name of the output of a stack with pull through caches.
PULL_THROUGH_CACHE: Final = "pullThroughCache"


@dataclass(frozen=True, kw_only=True)
class PoolOutput:
    """A pool: `spot`, `on-demand` or `reserved`, whether its machines have GPUs, and its largest number of nodes."""

    capacity: str
    has_gpus: bool
    max_nodes: int


@dataclass(frozen=True, kw_only=True)
class StackOutputs:
    """The outputs of a stack.

    `cluster` is the name of the cluster. `kubeconfig` (JSON) has no credential: it calls the cloud's own plugin for the
    caller's. `issuer` is that of the tokens of the cluster's service accounts. `checkpoints` is the bucket, on AWS those of all
    namespaces with spaces between, on Azure the storage account; `checkpoint_uris` are the addresses of the checkpoints of each training namespace. `ladders` are the pools
    of each training namespace, in the order of failover, without those of other clusters. `identities` are those of the jobs of
    each training namespace: a role's ARN on AWS, a principal of IAM on Google Cloud, a client ID on Azure. `pull_through_cache`
    are the addresses that replace the host of an upstream registry in the address of an image, by their prefixes; a stack
    without pull through caches has none.
    """

    cluster: str
    kubeconfig: str
    issuer: str
    checkpoints: str
    checkpoint_uris: Mapping[str, str]
    pools: Mapping[str, PoolOutput]
    ladders: Mapping[str, tuple[str, ...]]
    identities: Mapping[str, str]
    pull_through_cache: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ClusterOutputs:
    """The outputs of a TrainingCluster in a cloud.

    `token_exchanges` are those of the clusters from which it accepts jobs, by their issuers; None for a cluster that takes the tokens as they are.
    `checkpoint_keys` are the KMS keys of the checkpoints by training namespace, `checkpoint_account` is the `id` and `tenantId` of a storage
    account. `facts` are those of its pools by name, `checkpoint_uris` and `identities`
    those of the jobs by training namespace. `isolated`: its network leads to services of its own region only.
    """

    pools: Sequence[Pool]
    namespaces: Sequence[NamespaceSection]
    facts: Mapping[str, PoolSummary]
    region: str
    cluster: Input[str]
    kubeconfig: Input[str]
    issuer: Input[str]
    checkpoints: Input[str]
    checkpoint_uris: Mapping[str, Input[str]]
    identities: Mapping[str, Input[str]]
    pull_through_cache: Mapping[str, str] | None = None
    isolated: bool = False
    checkpoint_keys: Mapping[str, Input[str]] | None = None
    checkpoint_account: Mapping[str, Input[str]] | None = None
    token_exchanges: Mapping[str, Input[Json]] | None = None

    def by_name(self) -> dict[str, Input[object]]:
        """The values by the names under which a stack exports them."""
        found: dict[str, Input[object]] = {
            "cluster": self.cluster,
            "kubeconfig": self.kubeconfig,
            "issuer": self.issuer,
            "checkpoints": self.checkpoints,
            "pools": {pool.name: _exported(pool, self.facts[pool.name]) for pool in self.pools},
            "ladders": {each.name: list(each.pools_here) for each in self.namespaces},
            "checkpointUris": dict(self.checkpoint_uris),
            "identities": dict(self.identities),
            "network": {"region": self.region, "isolated": self.isolated},
        }
        if self.checkpoint_keys:
            found[CHECKPOINT_KEYS] = dict(self.checkpoint_keys)
        if self.checkpoint_account is not None:
            found[CHECKPOINT_ACCOUNT] = dict(self.checkpoint_account)
        if self.token_exchanges is not None:
            found[TOKEN_EXCHANGES] = dict(self.token_exchanges)
        if self.pull_through_cache:
            found[PULL_THROUGH_CACHE] = dict(self.pull_through_cache)
        return found


def _exported(pool: Pool, facts: PoolSummary) -> Json:
    return {
        "capacity": pool.capacity.value,
        "hasGpus": pool.has_gpus,
        "maxNodes": pool.max_nodes,
        "facts": facts_object(facts),
    }


def stack_outputs(reference: StackReference) -> Output[StackOutputs]:
    """The outputs of the stack that a StackReference names.

    Fails for a stack that does not export them: one of another program, or of an older release.
    """
    return cast("Output[Json]", reference.outputs).apply(read_outputs)


def read_outputs(found: Json) -> StackOutputs:
    """The outputs in a mapping of a stack's outputs by name. Raises ValueError if one is missing."""
    missing = [name for name in OUTPUTS if name not in found]
    if missing:
        raise ValueError(
            f"the stack has no output {', '.join(missing)}: refer to a stack of Holdfast, and update it with this release first"
        )
    return StackOutputs(
        cluster=str(found["cluster"]),
        kubeconfig=str(found["kubeconfig"]),
        issuer=str(found["issuer"]),
        checkpoints=str(found["checkpoints"]),
        checkpoint_uris={name: str(uri) for name, uri in mapping(found["checkpointUris"]).items()},
        pools={name: _pool(pool) for name, pool in mapping(found["pools"]).items()},
        ladders={
            name: tuple(str(pool) for pool in sequence(ladder))
            for name, ladder in mapping(found["ladders"]).items()
        },
        identities={name: str(identity) for name, identity in mapping(found["identities"]).items()},
        pull_through_cache={
            prefix: str(address) for prefix, address in mapping(found.get(PULL_THROUGH_CACHE)).items()
        },
    )


def _pool(found: JsonValue) -> PoolOutput:
    pool = mapping(found)
    most = pool.get("maxNodes")
    return PoolOutput(
        capacity=str(pool.get("capacity")),
        has_gpus=pool.get("hasGpus") is True,
        # The engine stores numbers as floats.
        max_nodes=int(most) if isinstance(most, int | float) else 0,
    )
