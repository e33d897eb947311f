"""The checkpoints of accepted jobs: their addresses at home, as the stacks that keep them export these.

`infra/<cloud>/stores.py` gives jobs here the use of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import pulumi

from pulumi_holdfast.config import naming
from pulumi_holdfast.config.clusters import ACCEPTS_FROM
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import mapping

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Output

    from pulumi_holdfast.config.clusters import AcceptedClusterSection
    from pulumi_holdfast.ladder.json import JsonValue

#: The beginning of the addresses of checkpoints in the stores of each cloud.
SCHEMES: Final = {"AWS": "s3://", "Google Cloud": "gs://", "Azure": "abfss://"}

#: What is left for jobs that cannot use the store of their home.
USE_OTHER_STORE: Final = (
    "Leave checkpoints out, and give the program the address of a store that both clusters reach."
)


@dataclass(frozen=True, kw_only=True)
class Home:
    """The stack whose store an entry of `acceptsFrom` names, and the path of the field that names it."""

    stack: str
    field: str
    reference: pulumi.StackReference

    def output(self, name: str) -> Output[JsonValue]:
        """An output of the stack; None if it has none of this name."""
        return cast("Output[JsonValue]", self.reference.get_output(name))

    def refusal(self, value: str, *, allowed: str, fix: str) -> pulumi.RunError:
        """The error, which the engine shows as one message, for a stack whose store jobs here cannot use."""
        named = f"{format_value(self.stack)}, {value}"
        return pulumi.RunError(str(Problem(field=self.field, value=named, allowed=allowed, fix=fix)))


@dataclass(frozen=True, kw_only=True)
class HomeCheckpoints:
    """Where the jobs of a namespace keep their checkpoints: at an address in the store of their home's stack."""

    home: Home
    uri: Output[str]


def home_checkpoints(
    accepted: Sequence[AcceptedClusterSection], cloud: str, *, parent: pulumi.Resource
) -> Mapping[str, HomeCheckpoints]:
    """Return the checkpoints at home, by namespace, of the jobs that keep them there; `cloud` is that of the cluster `parent`.

    A home on another cloud stops the program once its outputs are known.
    """
    found: dict[str, HomeCheckpoints] = {}
    for index, entry in enumerate(accepted):
        if entry.checkpoints is None:
            continue
        home = Home(
            stack=entry.checkpoints,
            field=f"{ACCEPTS_FROM}[{index}].checkpoints",
            reference=pulumi.StackReference(
                naming.home_checkpoints(parent.pulumi_resource_name, entry.name),
                entry.checkpoints,
                opts=pulumi.ResourceOptions(parent=parent),
            ),
        )
        uris = home.output("checkpointUris")
        for namespace in entry.namespaces:
            uri = uris.apply(partial(address_at_home, home=home, namespace=namespace, cloud=cloud))
            found[namespace] = HomeCheckpoints(home=home, uri=uri)
    return found


def address_at_home(uris: JsonValue, *, home: Home, namespace: str, cloud: str) -> str:
    """The address of a namespace's checkpoints, of all that a stack exports. Raises pulumi.RunError for one of another cloud."""
    uri = mapping(uris).get(namespace)
    if isinstance(uri, str) and uri.startswith(SCHEMES[cloud]):
        return uri
    exported = f"the address {format_value(uri)}" if uri else "no address"
    raise home.refusal(
        f"which exports {exported} for the namespace {namespace}",
        allowed=f"a stack on {cloud} with this namespace: jobs here use addresses that start with {SCHEMES[cloud]}",
        fix=f"Update that stack, or write another one; or {USE_OTHER_STORE[0].lower()}{USE_OTHER_STORE[1:]}",
    )


def bucket_in(uri: str) -> str:
    """The name of the bucket in an `s3://` or `gs://` address."""
    return uri.partition("://")[2].partition("/")[0]
