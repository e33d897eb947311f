"""A program with an object of each sort."""

from collections.abc import Callable

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes.apiextensions import v1 as crds
from pulumi_kubernetes.apps import v1 as apps
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta import v1 as meta

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.kubernetes import KubeClient


def team(namespace: str) -> Callable[[], None]:
    """A program with an object of each sort: plain, secret, awaited, a new kind and an object of it."""

    def program() -> None:
        group = f"{namespace}.test"
        space = core.Namespace("team", metadata={"name": namespace})
        here: meta.ObjectMetaArgsDict = {"namespace": space.metadata["name"]}
        core.ConfigMap("conf", metadata={"name": "conf", **here}, data={"k": "1"})
        core.Secret("sec", metadata=here, string_data={"p": pulumi.Output.secret("hunter2")})
        definition = crds.CustomResourceDefinition(
            "widgets", metadata={"name": f"widgets.{group}"}, spec=widget_spec(group)
        )
        kubernetes.apiextensions.CustomResource(
            "widget",
            api_version=f"{group}/v1",
            kind="Widget",
            metadata=here,
            spec={"size": 3},
            opts=pulumi.ResourceOptions(depends_on=[definition]),
        )
        core.Service("web", metadata=here, spec={"selector": {"app": "web"}, "ports": [{"port": 80}]})
        apps.Deployment("web", metadata=here, spec=web_spec())

    return program


def widget_spec(group: str) -> crds.CustomResourceDefinitionSpecArgsDict:
    return {
        "group": group,
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "open_apiv3_schema": {"type": "object", "x_kubernetes_preserve_unknown_fields": True}
                },
            }
        ],
    }


def web_spec() -> apps.DeploymentSpecArgsDict:
    requests = {"cpu": "100m", "memory": "1024Mi"}
    return {
        "selector": {"match_labels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "a", "resources": {"requests": requests}}]},
        },
    }


def config_of(client: KubeClient, namespace: str) -> Json:
    """What the program's ConfigMap holds on the API server."""
    return mapping((client.get("v1", "ConfigMap", "conf", namespace) or {}).get("data"))
