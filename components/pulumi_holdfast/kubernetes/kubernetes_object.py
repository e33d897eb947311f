"""Registers Kubernetes objects and Helm releases from their manifests, without the SDK's class for each kind.

The module of such a class loads the types of its whole API group, which took half of the program's import time, and
manifests need none of these types. The registered resources are the same as with the SDK's classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, cast

from pulumi import Alias, CustomResource, Output, Resource, ResourceOptions

from pulumi_holdfast.ladder.labels import TRAINING, TRAINING_VALUE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input

    from pulumi_holdfast.ladder.json import Json, JsonValue

#: As the SDK's classes register it, which find it out once, too: that reads a file.
_VERSION: Final = version("pulumi-kubernetes")

ADMISSION: Final = "admissionregistration.k8s.io/v1"
RBAC: Final = "rbac.authorization.k8s.io/v1"

#: The earlier versions that the SDK's classes name as aliases: a state with one of them keeps its object.
_EARLIER: Final[Mapping[str, tuple[str, ...]]] = {
    ADMISSION: ("admissionregistration.k8s.io/v1alpha1", "admissionregistration.k8s.io/v1beta1"),
    "apiextensions.k8s.io/v1": ("apiextensions.k8s.io/v1beta1",),
    "apps/v1": ("apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"),
    "flowcontrol.apiserver.k8s.io/v1": (
        "flowcontrol.apiserver.k8s.io/v1alpha1",
        "flowcontrol.apiserver.k8s.io/v1beta1",
        "flowcontrol.apiserver.k8s.io/v1beta2",
        "flowcontrol.apiserver.k8s.io/v1beta3",
    ),
    "networking.k8s.io/v1": ("extensions/v1beta1",),
    "policy/v1": ("policy/v1beta1",),
    RBAC: ("rbac.authorization.k8s.io/v1alpha1", "rbac.authorization.k8s.io/v1beta1"),
    "scheduling.k8s.io/v1": ("scheduling.k8s.io/v1alpha1", "scheduling.k8s.io/v1beta1"),
    "storage.k8s.io/v1": ("storage.k8s.io/v1beta1",),
}


class KubernetesObject(CustomResource):
    """One Kubernetes object. `fields` are those of its manifest beside `apiVersion` and `kind`."""

    def __init__(
        self,
        name: str,
        api_version: str,
        kind: str,
        fields: Mapping[str, Input[object]],
        opts: ResourceOptions | None = None,
    ) -> None:
        earlier = [Alias(type_=_type(each, kind)) for each in _EARLIER.get(api_version, ())]
        super().__init__(
            _type(api_version, kind),
            name,
            {"apiVersion": api_version, "kind": kind, **fields},
            _merged(opts, ResourceOptions(aliases=earlier)),
        )


def rule(group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()) -> Json:
    """Return one rule of an RBAC role; `names` restricts it to objects with these names."""
    return {
        "apiGroups": [group],
        "resources": list(resources),
        "verbs": list(verbs),
        **({"resourceNames": list(names)} if names else {}),
    }


def role_ref(kind: str, name: str) -> Json:
    """Return a binding's reference to a Role or ClusterRole."""
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def in_training_namespaces(*rules: JsonValue) -> Json:
    """Return the `matchConstraints` of a policy for what these rules name in training namespaces."""
    return {"namespaceSelector": {"matchLabels": {TRAINING: TRAINING_VALUE}}, "resourceRules": list(rules)}


def resource_rule(group: str, *resources: str, on: Sequence[str], version: str = "*") -> Json:
    """Return one of the `resourceRules` of a policy: these resources, `on` these operations."""
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(on),
        "resources": list(resources),
    }


def refusals(*listed: tuple[str, str]) -> list[JsonValue]:
    """Return the `validations` of a policy from what must hold and the message otherwise."""
    return [
        {"expression": expression, "message": message, "reason": "Forbidden"}
        for expression, message in listed
    ]


def admission_policy(
    name: str,
    kind: str,
    metadata: Mapping[str, Input[object]],
    policy: Input[Json],
    binding: Json,
    parent: Resource,
) -> KubernetesObject:
    """Create a policy of `kind` and its binding, which gives it effect and is returned, with the specifications of both."""
    opts = ResourceOptions(parent=parent)
    made = KubernetesObject(name, ADMISSION, kind, {"metadata": metadata, "spec": policy}, opts=opts)
    fields = {"metadata": {"name": metadata["name"]}, "spec": binding}
    after = ResourceOptions(parent=parent, depends_on=[made])
    return KubernetesObject(f"{name}-binding", ADMISSION, f"{kind}Binding", fields, opts=after)


class HelmRelease(CustomResource):
    """One release of a Helm chart. `fields` are those of the provider's kind Release."""

    def __init__(
        self, name: str, fields: Mapping[str, Input[object]], opts: ResourceOptions | None = None
    ) -> None:
        # The SDK's class registers `compat` with every release.
        super().__init__("kubernetes:helm.sh/v3:Release", name, {**fields, "compat": "true"}, _merged(opts))


def _type(api_version: str, kind: str) -> str:
    return f"kubernetes:{api_version if '/' in api_version else f'core/{api_version}'}:{kind}"


def _merged(*opts: ResourceOptions | None) -> ResourceOptions:
    merged = ResourceOptions(version=_VERSION)
    for each in opts:
        merged = ResourceOptions.merge(merged, each)
    return merged


def tied_to(value: Output[str], resources: Iterable[Resource]) -> Output[str]:
    """Return the same value; its users are created after these resources and deleted before them.

    It uses URNs instead of IDs: URNs are known on preview, so a new resource does not make the value unknown,
    which would show a replacement of all its users.
    """
    return Output.all(value, *(resource.urn for resource in resources)).apply(
        lambda known: cast("str", known[0])
    )
