"""Valid inputs of Kubernetes objects: a test overrides the one thing it is about."""

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_provider.inputs import to_object
from holdfast.simulator.pulumi.values import Properties

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
CRD = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"


def config_map(namespace: str, value: str = "1") -> Properties:
    return {"metadata": {"name": "conf", "namespace": namespace}, "data": {"k": value}}


def deployment(namespace: str, *, selector: Properties | None = None, image: str = "a") -> Properties:
    container: Properties = {"name": "c", "image": image}
    return {
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container], "nodeSelector": selector or {}},
            },
        },
    }


def widget_definition(group: str) -> Properties:
    return {
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x_kubernetes_preserve_unknown_fields": True}
                    },
                }
            ],
        },
    }


def as_object(inputs: Properties) -> Json:
    """A ConfigMap's inputs as the object others would apply."""
    return {"apiVersion": "v1", "kind": "ConfigMap", **to_object(inputs)}
