"""Reads the IAM role of machines on EC2: whether the cluster admits it, and whether it may read images.

Other programs may make more entries and policies, so nothing here stops a run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.clusters import clusters_of
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    by_urn,
    is_list,
    known_items,
    of_type,
    of_types,
    text_at,
)

_ENTRY: Final = "aws:eks/accessEntry:AccessEntry"
_ROLE: Final = "aws:iam/role:Role"
#: EKS itself admits the role of a managed node group.
_NODE_GROUP: Final = "aws:eks/nodeGroup:NodeGroup"
_GRANT: Final = re.compile(
    r"aws:iam/(?:rolePolicy|rolePolicyAttachment|rolePolicyAttachmentsExclusive|policyAttachment):\w+"
)
_MANAGED: Final = ":iam::aws:policy/"
#: Policies of AWS with every right that machines need.
_BROAD: Final = frozenset({"AdministratorAccess", "PowerUserAccess", "ReadOnlyAccess"})


@dataclass(frozen=True, kw_only=True)
class _Right:
    """What a machine has to do: the policies of AWS that allow it, by name, and the actions in other policies."""

    what: str
    policies: re.Pattern[str]
    actions: re.Pattern[str]


_RIGHTS: Final = (
    _Right(
        what="read images from ECR, those of EKS' own add-ons included",
        policies=re.compile(r"ContainerRegistry|ECR"),
        actions=re.compile(r"\*|(?i:ecr:).*"),
    ),
    _Right(
        what="describe themselves to EKS, without which they do not join the cluster",
        policies=re.compile(r"AmazonEKSWorkerNode"),
        actions=re.compile(r"\*|(?i:ec2:(?:\*|describe).*)"),
    ),
)


def role_of_class(node_class: StackResource, resources: Sequence[StackResource]) -> frozenset[str]:
    """Return the URNs of the roles of the program that an EC2NodeClass gives its machines: one, or none."""
    named, referred = text_at(node_class.props, "spec", "role"), node_class.refers_to.get("spec", ())
    return _roles(named if isinstance(named, str) else "", referred, resources)


def role_of_group(group: StackResource, resources: Sequence[StackResource]) -> frozenset[str]:
    """Return the URNs of the roles of the program that a managed node group gives its machines: one, or none."""
    named, referred = text_at(group.props, "nodeRoleArn"), group.refers_to.get("nodeRoleArn", ())
    return _roles(named.rpartition("/")[2] if isinstance(named, str) else "", referred, resources)


def without_access(
    node_pool: StackResource, node_class: StackResource, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield that the role of the machines has no access entry, where the program makes entries, and only they let machines in."""
    modes = [
        at(each.props, "accessConfig", "authenticationMode")
        for each in clusters_of(node_pool, "aws", resources)
    ]
    role, entries = text_at(node_class.props, "spec", "role"), of_type(resources, _ENTRY)
    if modes != ["API"] or not entries or not isinstance(role, str):
        return
    roles = role_of_class(node_class, resources)
    admitting = (
        *((each, "principalArn") for each in entries),
        *((each, "nodeRoleArn") for each in of_type(resources, _NODE_GROUP)),
    )
    if not any(
        str(text_at(each.props, field)).rpartition("/")[2] == role
        or roles & {*each.refers_to.get(field, ())}
        or (text_at(each.props, field) is UNKNOWN and not each.refers_to.get(field))
        for each, field in admitting
    ):
        yield f"the role {role!r} of its machines has no access entry in this program, without which they do not join the cluster"


def missing_rights(roles: frozenset[str], resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield what no policy of this program allows the machines of a role that it makes."""
    for urn in sorted(roles):
        grants = [*_grants(by_urn(resources)[urn], resources)]
        for right in _RIGHTS:
            if not any(_allows(each, right) for each in grants):
                name = by_urn(resources)[urn].logical_name
                yield f"no policy of this program lets the role {name!r} of its machines {right.what}"


def _roles(name: str, referred: Sequence[str], resources: Sequence[StackResource]) -> frozenset[str]:
    return frozenset(
        each.urn
        for each in of_type(resources, _ROLE)
        if each.urn in referred or (name and at(each.props, "name") == name)
    )


def _grants(role: StackResource, resources: Sequence[StackResource]) -> Iterator[Value]:
    """Yield the policies of a role: documents, the addresses of policies of AWS, and UNKNOWN for those that are not shown."""
    yield from known_items(role.props, "managedPolicyArns")
    yield from (at(each, "policy") for each in known_items(role.props, "inlinePolicies"))
    name = text_at(role.props, "name")
    for each in of_types(resources, _GRANT):
        named = (at(each.props, "role"), at(each.props, "roleName"), *known_items(each.props, "roles"))
        is_its_own = any(role.urn in urns for urns in each.refers_to.values())
        if is_its_own or (isinstance(name, str) and name in named):
            yield at(each.props, "policy")
            yield from known_items(each.props, "policyArns")
            yield from _of_address(each, resources)


def _of_address(grant: StackResource, resources: Sequence[StackResource]) -> Iterator[Value]:
    """Yield the policy that an attachment names: its document where the program makes it."""
    known, address = by_urn(resources), text_at(grant.props, "policyArn")
    made = [known[urn] for urn in grant.refers_to.get("policyArn", ()) if urn in known]
    documents = [at(each.props, "policy") for each in made]
    yield from documents if any(isinstance(each, str) for each in documents) else [address]


def _allows(policy: Value, right: _Right) -> bool:
    """Whether a policy may give a right: one that is not shown, and not of AWS, may give any."""
    if not isinstance(policy, str):
        return policy is UNKNOWN
    if policy.startswith("arn:"):
        name = policy.rpartition("/")[2]
        return _MANAGED not in policy or name in _BROAD or right.policies.search(name) is not None
    return any(
        at(each, "Effect") == "Allow" and any(right.actions.fullmatch(action) for action in actions(each))
        for each in statements(policy)
    )


def statements(document: Value) -> Sequence[Value]:
    """Return the statements of a policy's document; none if it is not one."""
    if not isinstance(document, str):
        return ()
    try:
        parsed = cast("Value", json.loads(document))
    except ValueError:
        return ()
    found = at(parsed, "Statement")
    return found if is_list(found) else (found,)


def actions(statement: Value) -> Sequence[str]:
    """Return the actions of a statement."""
    found = at(statement, "Action")
    return [each for each in (found if is_list(found) else (found,)) if isinstance(each, str)]
