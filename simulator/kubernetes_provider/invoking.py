"""The functions of the kubernetes package a program can call, and those it must do without here."""

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.manifests import objects_in
from holdfast.simulator.kubernetes_provider.properties import fields, to_properties
from holdfast.simulator.pulumi.values import Properties, Value, reveal

_DECODE = "kubernetes:yaml:decode"
_INSTEAD = {
    "kubernetes:helm:template": "register the chart as a helm.v3.Release",
    "kubernetes:kustomize:directory": "render it beforehand, and register the YAML as a yaml.ConfigGroup",
    "kubernetes:helm.sh/v4:Chart": "register the chart as a helm.v3.Release",
    "kubernetes:kustomize/v2:Directory": "render it beforehand, and register the YAML as a yaml.ConfigGroup",
    "kubernetes:yaml/v2:ConfigFile": "use yaml.ConfigFile, or apiextensions.CustomResource for each object",
    "kubernetes:yaml/v2:ConfigGroup": "use yaml.ConfigGroup, or apiextensions.CustomResource for each object",
}


def invoke(token: str, arguments: Properties) -> dict[str, Value]:
    """Return what a function returns. Raises RehearsalError for one that cannot be rehearsed."""
    if token != _DECODE:
        raise refusal("function", token)
    text, namespace = arguments.get("text"), arguments.get("defaultNamespace")
    objects = objects_in(str(reveal(text)))
    found = [_placed(to_properties(obj), str(namespace) if namespace else None) for obj in objects]
    return {"result": found}


def refusal(what: str, token: str) -> RehearsalError:
    """Return the error for a function or component that cannot be rehearsed, with what to use instead."""
    instead = _INSTEAD.get(token, f"{_DECODE} is the only function that is")
    return RehearsalError(f"{what} {token!r} is not rehearsed; {instead}")


def _placed(obj: dict[str, Value], namespace: str | None) -> Value:
    """Give an object the namespace that its text leaves out."""
    metadata = fields(obj, "metadata")
    if namespace and not metadata.get("namespace"):
        return {**obj, "metadata": {**metadata, "namespace": namespace}}
    return obj
