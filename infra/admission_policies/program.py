"""Reads a program's pools, ladders and admission policies from files: manifests, and the output of the Pulumi command."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import yaml

from holdfast.policies.program.resources import Stack, StackResource, Value, is_list, is_object, text_at
from holdfast.scheduling.errors import ConfigError, Problem
from holdfast.scheduling.json import UNKNOWN

#: What the engine writes for a value that only an update knows, and how it marks a secret.
_UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_ALLOWED: Final = "Kubernetes manifests (YAML or JSON), the output of `pulumi stack export`, or that of `pulumi preview --json`"


def read_program(files: Sequence[Path]) -> Stack:
    """Return the resources in these files. Raises ConfigError for a file that cannot be read."""
    return Stack(resource for file in files for resource in _resources(file))


def _resources(file: Path) -> Iterator[StackResource]:
    for document in _documents(file):
        if document is None:
            continue
        if not is_object(document):
            raise _unreadable(file, "a document that is no object")
        if is_object(exported := document.get("deployment")):
            yield from map(_of_state, _objects(exported.get("resources")))
        elif "steps" in document or "changeSummary" in document:
            steps = _objects(document.get("steps"))
            yield from (_of_state(made) for step in steps if is_object(made := step.get("newState")))
        elif document.get("kind") == "List":
            yield from map(_of_manifest, _objects(document.get("items")))
        elif isinstance(document.get("kind"), str) and isinstance(document.get("apiVersion"), str):
            yield _of_manifest(document)
        else:
            raise _unreadable(file, "a document without `apiVersion` and `kind`")


def _documents(file: Path) -> Sequence[Value]:
    try:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".json":
            return [json.loads(text)]
        return list(yaml.safe_load_all(text))
    except OSError as error:
        raise _unreadable(file, error.strerror or "a file that cannot be read") from error
    except (ValueError, yaml.YAMLError) as error:
        raise _unreadable(file, "a file that is neither YAML nor JSON") from error


def _unreadable(file: Path, value: str) -> ConfigError:
    problem = Problem(field=str(file), value=value, allowed=_ALLOWED, fix="Name files of these kinds.")
    return ConfigError([problem])


def _objects(value: Value) -> Iterator[Mapping[str, Value]]:
    for each in value if is_list(value) else ():
        if is_object(each):
            yield each


def _of_manifest(manifest: Mapping[str, Value]) -> StackResource:
    """Return a manifest as the Kubernetes provider registers it."""
    version, kind = str(manifest.get("apiVersion")), str(manifest.get("kind"))
    name = text_at(manifest, "metadata", "name") or ""
    token = f"kubernetes:{version if '/' in version else f'core/{version}'}:{kind}"
    return StackResource(type=token, urn=f"urn:pulumi:files::manifests::{token}::{name}", props=manifest)


def _of_state(found: Mapping[str, Value]) -> StackResource:
    """Return a resource of a state or of a preview: its outputs, and those inputs that are not outputs."""
    inputs, outputs, made_of = (
        _object(found.get(part)) for part in ("inputs", "outputs", "propertyDependencies")
    )
    props = {**inputs, **outputs}
    return StackResource(
        type=str(found.get("type", "")),
        urn=str(found.get("urn", "")),
        props={key: _plain(value) for key, value in props.items()},
        parent=str(found.get("parent", "")),
        # A reference to a provider is its URN and its ID.
        provider=str(found.get("provider", "")).rpartition("::")[0],
        refers_to={key: tuple(str(urn) for urn in urns) for key, urns in made_of.items() if is_list(urns)},
    )


def _object(value: Value) -> Mapping[str, Value]:
    return value if is_object(value) else {}


def _plain(value: Value) -> Value:
    """Return a value with UNKNOWN for its unknown parts; secrets are unknown."""
    if value == _UNKNOWN:
        return UNKNOWN
    if is_list(value):
        return [_plain(each) for each in value]
    if is_object(value):
        return UNKNOWN if _SIGNATURE in value else {key: _plain(each) for key, each in value.items()}
    return value
