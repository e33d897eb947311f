"""Reads a kubeconfig: the API server of its context, and the command that authenticates the user."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import yaml

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence


@dataclass(frozen=True, kw_only=True)
class KubeconfigContext:
    """The current context of a kubeconfig.

    `cluster` is the cluster entry; `command` and `arguments` are the user's `exec` command, "" for none.
    """

    cluster: Json = field(default_factory=dict[str, JsonValue])
    command: str = ""
    arguments: tuple[str, ...] = ()

    @property
    def server(self) -> str:
        """The API server's address."""
        return str(self.cluster.get("server", ""))

    def option(self, name: str) -> str | None:
        """Return the value of an argument of the command, written `--name value` or `--name=value`."""
        for at, argument in enumerate(self.arguments):
            if argument == name and at + 1 < len(self.arguments):
                return self.arguments[at + 1]
            if argument.startswith(f"{name}="):
                return argument.removeprefix(f"{name}=")
        return None


def read_connection(configuration: Json) -> KubeconfigContext | None:
    """Return the connection of a provider's `kubeconfig`, `context` and `cluster`; None without a cluster.

    A kubeconfig is a path, YAML text, or a mapping.
    """
    document = _document(configuration.get("kubeconfig"))
    context = _entry(
        document, "contexts", configuration.get("context") or document.get("current-context"), "context"
    )
    cluster = _entry(document, "clusters", configuration.get("cluster") or context.get("cluster"), "cluster")
    if not cluster:
        return None
    command = mapping(_entry(document, "users", context.get("user"), "user").get("exec"))
    return KubeconfigContext(
        cluster=cluster,
        command=Path(str(command.get("command", ""))).name,
        arguments=tuple(str(each) for each in sequence(command.get("args"))),
    )


def _document(kubeconfig: JsonValue) -> Json:
    if not isinstance(kubeconfig, str):
        return mapping(kubeconfig)
    try:
        text = Path(kubeconfig).expanduser().read_text(encoding="utf-8")
    except (OSError, RuntimeError, ValueError):
        # The text of a kubeconfig, usually too long for a path.
        text = kubeconfig
    try:
        return mapping(cast("JsonValue", yaml.safe_load(text)))
    except yaml.YAMLError:
        return {}


def _entry(document: Json, section: str, name: JsonValue, content: str) -> Json:
    for each in map(mapping, sequence(document.get(section))):
        if each.get("name") == name:
            return mapping(each.get(content))
    return {}
