"""The cluster of another owner, which a stack names: a program of its owner makes it in the simulated cloud before the stack is rehearsed.

It is Holdfast's own network and control plane without anything in it; a file with sections of a stack file changes what differs.
"""

from functools import partial
from typing import TYPE_CHECKING, Final, cast

from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.clouds.state import CloudObject
from pulumi_holdfast.rehearsal.engine import Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.stacks.stack import Stack, StackSimulators

if TYPE_CHECKING:
    from pulumi_holdfast.aws.config.sections import AwsPlatform

_OWNER: Final = "owner-of-the-cluster"
_AWS: Final = "aws"


def named_cluster(stack: Stack) -> str | None:
    """Return the existing cluster that a stack uses; None if it makes its own."""
    found = mapping(_document(stack).get("cluster")).get("existing")
    return found if isinstance(found, str) else None


def make_existing_cluster(stack: Stack, changes: Json) -> None:
    """Make the cluster that a stack names, once; `changes` are sections of its owner's stack file.

    Raises RehearsalError for a cloud whose existing clusters are not simulated.
    """
    name, document = named_cluster(stack), _document(stack)
    if name is None:
        return
    if stack.subject.cloud != _AWS:
        raise RehearsalError(
            f"{stack.name} uses the existing cluster {name}: a rehearsal makes existing clusters of AWS alone; use a copy of the "
            "stack without `cluster.existing`"
        )
    # A local import, because a cloud's SDK takes half a second and 50 MB.
    from pulumi_holdfast.clouds import CLOUDS

    config = mapping(stack.subject.settings.get("config"))
    settings = {key: value for key, value in config.items() if isinstance(value, str)}
    owners: Json = {
        "cloud": _AWS,
        "protected": False,
        "cluster": {"publicAccessCidrs": ["198.51.100.0/24"]},
        "pools": document["pools"],
        **changes,
    }
    platform = cast("AwsPlatform", CLOUDS[_AWS].read(owners, settings))
    subject = Subject(
        program=partial(_make_eks, platform, name),
        project={"name": _OWNER, "runtime": "python"},
        settings={"config": settings},
        packages=(_AWS, "kubernetes"),
    )
    providers = StackSimulators(
        stack=_OWNER, project=_OWNER, workspace=stack.workspace, faults=Faults(), place=stack.place
    )
    with Rehearsal.open(
        _OWNER, stack.workspace, subject=subject, providers=providers, place=stack.place
    ) as owner:
        owner.up()


def is_owners(one: CloudObject) -> bool:
    """Whether an object belongs to the owner of an existing cluster, whose stack stays."""
    return one.urn.startswith(f"urn:pulumi:{_OWNER}::")


def _document(stack: Stack) -> Json:
    return mapping(mapping(stack.subject.settings.get("config")).get(PLATFORM))


def _make_eks(platform: "AwsPlatform", name: str) -> None:
    import pulumi

    from pulumi_holdfast.aws.control_plane.access import Caller
    from pulumi_holdfast.aws.network import network_of
    from pulumi_holdfast.aws.preflight.queries import check_account
    from pulumi_holdfast.aws.training_cluster import cluster_of

    owner = pulumi.ComponentResource("holdfast:rehearsal:Owner", "owner")
    account = check_account(platform, _OWNER, parent=owner)
    network = network_of(platform, account, name, parent=owner)
    cluster_of(platform, account, network, name, tags={}, caller=Caller(), parent=owner)
