"""What a stranger does who follows a message that does not stop the run, or does so only in the profile `strict`."""

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Final, cast

import yaml

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import INSTANCE_TYPE, POOL
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.program.clusters import cluster_of, is_cluster
from pulumi_holdfast.program.pools.declared import DeclaredPool, all_pools
from pulumi_holdfast.program.pools.eks import NODE_GROUP
from pulumi_holdfast.program.resources import StackResource, Value, items_at
from tests.support.builders.policy_programs import of, without
from tests.support.builders.stack_resources import compute_class, resource
from tests.unit.policies.strangers.fixes import (
    FIXES,
    Fields,
    Fixes,
    Program,
    pool_named,
    put_at,
    requirements_of,
    step_into,
)
from tests.unit.policies.strangers.programs import SMALL, node_class, node_pool, one_of

_BLOCK: Final = "203.0.113.0/24"
_RANGES: Final[Mapping[str, tuple[str, Value]]] = {
    "publicAccessCidrs": ("vpcConfig.publicAccessCidrs", [_BLOCK]),
    "authorizedIPRanges": ("apiServerAccessProfile.authorizedIPRanges", [_BLOCK]),
    "masterAuthorizedNetworksConfig": ("masterAuthorizedNetworksConfig", {"cidrBlocks": [{"cidrBlock": _BLOCK}]}),
}  # fmt: skip


def _found(pattern: str, message: str) -> re.Match[str]:
    found = re.search(pattern, message)
    assert found, f"the message says what to write and where: {message}"
    return found


def _append(fields: Mapping[str, Value], path: str, item: Value) -> None:
    *steps, last = path.split(".")
    at: object = fields
    for step in steps:
        at = step_into(at, step)
    listed = items_at(cast("Fields", at), last)
    assert listed is not UNKNOWN, "programs of strangers are known"
    cast("Fields", at)[last] = [*listed, item]


def _taint(program: Program, message: str) -> None:
    key, value, effect, path = _found(r"such as ([^=]+)=([^:]*):(\w+), under `([^`]+)`", message).groups()
    _append(pool_named(program, message).resource.props, path, {"key": key, "value": value, "effect": effect})


def _split(program: Program, message: str) -> None:
    """The pool keeps its name for its on-demand nodes; another one, which a ladder may name, makes the spot nodes."""
    mixed = pool_named(program, message).resource
    name = f"{mixed.logical_name}-spot"
    spot = replace(mixed, urn=f"{mixed.urn}-spot", props=deepcopy(dict(mixed.props)))
    put_at(spot.props, "metadata.name", name)
    if POOL in str(mixed.props):
        put_at(spot.props, "spec.template.metadata.labels", {POOL: name})
    program.append(spot)
    for pool, kind in ((mixed, "on-demand"), (spot, "spot")):
        others = [each for each in requirements_of(pool) if each["key"] != "karpenter.sh/capacity-type"]
        required: Value = [one_of("karpenter.sh/capacity-type", kind), *others]
        put_at(pool.props, "spec.template.spec.requirements", required)


def _create_role(program: Program, message: str) -> None:
    kind, service = _found(r"Create it \((\S+) with `awsServiceName: ([^`]+)`", message).groups()
    program.append(resource(kind, "spot", {"awsServiceName": service}))


def _add_quota(program: Program, message: str) -> None:
    namespace, key = _found(r"namespace '([^']+)' .* Add one with `([^`]+)`", message).groups()
    props: dict[str, Value] = {
        "metadata": {"name": "quota", "namespace": namespace},
        "spec": {"hard": {key: "1000"}},
    }
    program.append(resource("kubernetes:core/v1:ResourceQuota", "quota", props))


def _add_default_pool(program: Program, message: str) -> None:
    """Add a pool of CPU machines as the program makes its pools."""
    assert "Add an on-demand pool of CPU machines without taints" in message, message
    pool = next(each for each in all_pools(program) if each.is_for_jobs)
    program.append(_default_pool(pool, program))


def _default_pool(beside: DeclaredPool, program: Program) -> StackResource:
    cluster = (cluster_of(beside.resource, program),)
    match beside.provisioner:
        case Provisioner.GKE:
            config: Value = {"machineType": "n2-standard-8"}
            made = resource("gcp:container/nodePool:NodePool", "cpu", {"name": "cpu", "nodeConfig": config})
            return replace(made, refers_to={"cluster": cluster})
        case Provisioner.AKS:
            props: Fields = {"agentPoolName": "cpu", "vmSize": "Standard_D8s_v5", "count": 2.0}
            made = resource("azure-native:containerservice:AgentPool", "cpu", props)
            return replace(made, refers_to={"resourceName": cluster})
        case _ if beside.resource.type == NODE_GROUP:
            props = {"nodeGroupName": "cpu", "clusterName": "east", "instanceTypes": ["m6i.2xlarge"]}
            return resource(NODE_GROUP, "cpu", props)
        case provisioner:
            nap = provisioner is Provisioner.NAP
            cpu = one_of(INSTANCE_TYPE, "Standard_D8s_v5" if nap else "m6i.2xlarge")
            kind = "AKSNodeClass" if nap else "EC2NodeClass"
            made = node_pool("cpu", cpu, kinds=["on-demand"], labels={}, node_class=kind)
            return replace(made, provider=beside.resource.provider)


def _fixed_size(program: Program, message: str) -> None:
    named = _found(r"node pool '([^']+)' autoscales", message)[1]
    fields = cast("Fields", of(program, ":AgentPool", named).props)
    fields.update(enableAutoScaling=False, count=fields["maxCount"])


def _set_as_written(program: Program, message: str) -> None:
    path, value = _found(r"Set `([\w.]+)(?:: |` to `)([^`]+)`", message).groups()
    named = _found(r"'([^']+)'", message)[1]
    owner = next(
        each for each in program if each.logical_name == named and path.partition(".")[0] in each.props
    )
    put_at(owner.props, path, yaml.safe_load(value))


def _add_budget(program: Program, message: str) -> None:
    path, budget = _found(r"Add a budget under `([^`]+)`: `([^`]+)`", message).groups()
    _append(pool_named(program, message).resource.props, path, yaml.safe_load(budget))


def _declare_pools(program: Program, message: str) -> None:
    assert "declare `madeElsewhere: [pools]`" in message, message
    program.settings["madeElsewhere"] = ["pools"]


def _one_size(program: Program, message: str) -> None:
    small = _found(r"the pods do not fit on ([^.]+\.\w+)\. Make a node group", message)[1].split(", ")
    for group in (each for each in program if each.type == NODE_GROUP):
        fields = cast("Fields", group.props)
        fields["instanceTypes"] = [
            each for each in cast("list[str]", fields["instanceTypes"]) if each not in small
        ]


def _declare_shapes(program: Program, message: str) -> None:
    assert "stands for its jobs" in message, message
    cast("Fields", of(program, ":FallbackPolicy").props["spec"])["shapes"] = [deepcopy(SMALL)]


def _name_ranges(program: Program, message: str) -> None:
    named = _found(r"API server of '([^']+)'", message)[1]
    cluster = next(each for each in program if each.logical_name == named and is_cluster(each.type))
    path, value = next((path, value) for part, (path, value) in _RANGES.items() if part in message)
    put_at(cluster.props, path, value)


def _add_zones(program: Program, message: str) -> None:
    pool = pool_named(program, message)
    path = pool.taints_path.removesuffix("nodeConfig.taints") + "nodeLocations"
    put_at(pool.resource.props, path, ["us-central1-a", "us-central1-b"])


def _name_queue(program: Program, message: str) -> None:
    named, path = _found(r"'([^']+)' runs Karpenter .* Set its value `([^`]+)`", message).groups()
    put_at(of(program, ":Release", named).props, f"values.{path}", "interruptions")


def _send_notices(program: Program, message: str) -> None:
    notice, kind = _found(r"sends `([^`]+)` to a queue.* Add a rule for it \(([^)]+)\)", message).groups()
    pattern = json.dumps({"detail-type": [notice]})
    target: Fields = {"rule": "notices", "arn": "arn:aws:sqs:eu-central-1:123456789012:interruptions"}
    program.append(resource(kind, "notices", {"name": "notices", "eventPattern": pattern}))
    program.append(resource("aws:cloudwatch/eventTarget:EventTarget", "notices", target))


def _pin_chart(program: Program, message: str) -> None:
    named = _found(r"^'([^']+)' installs chart", message)[1]
    put_at(of(program, ":Release", named).props, "version", "1.14.1")


def _block_public_access(program: Program, message: str) -> None:
    named, fields = _found(r"'([^']+)'.* no BucketPublicAccessBlock of it has (.*)\. Set", message).groups()
    blocks: Fields = {"bucket": named, **dict.fromkeys(fields.split(", "), True)}
    program.append(resource("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", "block", blocks))


def _keep_versions(program: Program, message: str) -> None:
    named, field, value = _found(r"'([^']+)'.* BucketVersioning with `(\w+): (\w+)`", message).groups()
    versioning: Fields = {"bucket": named, "versioningConfiguration": {field: value}}
    program.append(resource("aws:s3/bucketVersioning:BucketVersioning", "versions", versioning))


def _name_prefix(program: Program, message: str) -> None:
    named, everything = _found(
        r"^'([^']+)' allows reading or writing (\S+), .* Name the prefix", message
    ).groups()
    policy = of(program, ":RolePolicy", named)
    put_at(policy.props, "policy", str(policy.props["policy"]).replace(everything, "arn:aws:s3:::b/vision/*"))


def _split_class(program: Program, message: str) -> None:
    mixed = of(program, ":ComputeClass", _found(r"^ComputeClass '([^']+)'", message)[1])
    priorities = items_at(mixed.props, "spec", "priorities")
    assert priorities is not UNKNOWN, "programs of strangers are known"
    without(program, mixed)
    program.extend(
        compute_class(cast("Fields", each), name=f"{mixed.logical_name}-{index}")
        for index, each in enumerate(priorities)
    )


def _remove_ignored(program: Program, message: str) -> None:
    named, path, index = _found(
        r"^'([^']+)' .* under `([\w.]+)\[(\d+)\]`.*, which is ignored", message
    ).groups()
    owner = next(each for each in program if each.logical_name == named)
    listed = items_at(owner.props, *path.split("."))
    assert listed is not UNKNOWN, "programs of strangers are known"
    put_at(owner.props, path, [*listed[: int(index)], *listed[int(index) + 1 :]])


def _make_class(program: Program, message: str) -> None:
    kind, name = _found(r"it names the (\w+) '([^']+)', and this program makes others", message).groups()
    program.append(node_class(kind, name))


def _find_groups(program: Program, message: str) -> None:
    name = _found(r"its chart '([^']+)'", message)[1]
    put_at(of(program, ":Release", name).props, "values.autoDiscovery", {"clusterName": "east"})


def _remove_patch(program: Program, message: str) -> None:
    """Keep what the object says, and remove the patch that says otherwise."""
    named = _found(r"the patch '([^']+)' changes it, .* remove the patch", message)[1]
    without(program, of(program, "Patch", named))


#: By a part of the message's fix, in the order in which they are looked for: first those of messages that stop a run.
ADVICE: Fixes = {
    "name its cluster in `autoDiscovery.clusterName`": _find_groups,
    "remove the patch": _remove_patch,
    "Add a taint, such as": _taint,
    "Make a pool of each capacity type": _split,
    "Create it (aws:iam": _create_role,
    "Add one with `requests.": _add_quota,
    "Add an on-demand pool of CPU machines": _add_default_pool,
    "Add a budget under": _add_budget,
    "declare `madeElsewhere: [pools]`": _declare_pools,
    "Make a node group for each size": _one_size,
    "the first tier stands for its jobs": _declare_shapes,
    "Name the CIDR ranges": _name_ranges,
    "Add machine types or zones": _add_zones,
    "Set its value `": _name_queue,
    "Add a rule for it": _send_notices,
    "Set the exact version": _pin_chart,
    "no BucketPublicAccessBlock": _block_public_access,
    "Add a BucketVersioning": _keep_versions,
    "Name the prefix": _name_prefix,
    "Make a class for each": _split_class,
    "which is ignored": _remove_ignored,
    "and this program makes others, but not that one": _make_class,
    "or give it a fixed number of nodes": _fixed_size,
    **FIXES,
    "Set `": _set_as_written,
}

#: Messages that ask for nothing which a program could change, and why.
WITHOUT_FIX: Final[Mapping[str, str]] = {
    "another program may make it, and its pools cannot be seen from here": "it is declared as made elsewhere, so the "
    "program that makes it is judged by itself",
    "does not show all of it": "the program that makes the ladder judges it",
    "stays on spot indefinitely": "the ladder declares it with `maxFailures: -1`",
    "have no GPU driver": "whether another program installs a driver cannot be declared",
    "whether its nodes have vpc.amazonaws.com/efa is not known": "the launch template is another program's",
    "so a container may request only one": "containers are in the jobs, which no program has",
    "its machine types are not known yet": "the device plugin decides as how many GPUs the partitions count",
    "are not in any machine table": "Compute Engine rejects the pool when it is created",
}
