"""EKS add-ons: those with a Deployment become healthy only with a node and permissions."""

import json
from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.aws.cluster import ADDON, IDENTITY, NODE_GROUP, no_cluster
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Invoke, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.relations import owned
from pulumi_holdfast.rehearsal.clouds.state import CloudObject

_EBS: Final = "aws-ebs-csi-driver"
# The add-ons with a Deployment, and the path of its settings in the configuration.
_DEPLOYMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "coredns": (),
    "metrics-server": (),
    _EBS: ("controller",),
}
_EBS_ACCOUNT: Final = ("kube-system", "ebs-csi-controller-sa")
# The default toleration of both Deployments.
_TOLERATED: Final[Json] = {"key": "CriticalAddonsOnly", "operator": "Exists"}


def _not_healthy(request: ResourceRequest) -> str | None:
    """A Deployment without a node, or a driver without permissions, never becomes healthy."""
    addon = str(request.inputs.get("addonName"))
    if addon not in _DEPLOYMENTS or (_has_node(request, addon) and _may_act(request, addon)):
        return None
    cluster = request.inputs.get("clusterName")
    return (
        f"waiting for EKS Add-On ({cluster}:{addon}) create: timeout while waiting for state to become 'ACTIVE' "
        "(last state: 'DEGRADED', timeout: 20m0s)"
    )


def _has_node(request: ResourceRequest, addon: str) -> bool:
    settings: Json = _configuration(request)
    for step in _DEPLOYMENTS[addon]:
        settings = mapping(settings.get(step))
    groups = owned(request.inventory, NODE_GROUP, clusterName=request.inputs.get("clusterName"))
    return any(_accepts(group, settings) for group in groups)


def _accepts(group: CloudObject, settings: Json) -> bool:
    labels = mapping(group.inputs.get("labels"))
    selector = mapping(settings.get("nodeSelector"))
    tolerations = sequence(settings.get("tolerations")) or (_TOLERATED,)
    return all(labels.get(key) == value for key, value in selector.items()) and all(
        any(_tolerates(mapping(one), mapping(taint)) for one in tolerations)
        for taint in sequence(group.inputs.get("taints"))
    )


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")


def _may_act(request: ResourceRequest, addon: str) -> bool:
    """The driver gets its role from a Pod Identity association, also one of the add-on, or from its service account."""
    if addon != _EBS or request.inputs.get("serviceAccountRoleArn"):
        return True
    identities = owned(request.inventory, IDENTITY, clusterName=request.inputs.get("clusterName"))
    return bool(request.inputs.get("podIdentityAssociations")) or any(
        (one.inputs.get("namespace"), one.inputs.get("serviceAccount")) == _EBS_ACCOUNT for one in identities
    )


def _configuration(request: ResourceRequest) -> Json:
    """Raises ValueError for anything but an object."""
    text = request.inputs.get("configurationValues")
    found: JsonValue = json.loads(str(text)) if text else {}
    if not isinstance(found, Mapping):
        raise ValueError("no object")  # noqa: TRY004 - the same error as for invalid JSON
    return found


RESOURCES: Mapping[str, Rules] = {
    ADDON: Rules(
        name_property="addonName",
        taken="ResourceInUseException: Addon already exists.",
        refuse_create=(no_cluster, _not_healthy),
    )
}


def _get_addon_version(call: Call) -> Json:
    """A version above every pin: which builds EKS has is not simulated."""
    return {**call.arguments, "id": call.arguments.get("addonName"), "version": "v99.0.0-eksbuild.1"}


INVOKES: Mapping[str, Invoke] = {"aws:eks/getAddonVersion:getAddonVersion": _get_addon_version}
