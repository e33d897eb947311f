"""The types one provider package offers, looked up in its installed SDK."""

import ast
import difflib
import importlib
import importlib.util
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import cast

import pulumi

from rehearsal.errors import RehearsalError
from rehearsal.providers.cloud.schema.annotations import argument_properties, output_properties
from rehearsal.providers.cloud.schema.types import ResourceSchema

# Which extra of the project installs a package's SDK.
_EXTRAS = {"aws": "aws", "eks": "aws", "gcp": "gcp", "azure-native": "azure"}


class UnknownTypeError(RehearsalError):
    """A type token the installed SDK does not have."""


class Schema:
    """The resource types of one package. Imports only the SDK module of a type that is asked for."""

    def __init__(self, package: str) -> None:
        self.package = package
        self._module = f"pulumi_{package.replace('-', '_')}"
        self.version, self._classes = self._load()

    @staticmethod
    @cache
    def for_package(package: str) -> "Schema":
        """Return the schema of a package, such as "aws" or "azure-native".

        Raises RehearsalError where its SDK is not installed.
        """
        return Schema(package)

    @property
    def tokens(self) -> frozenset[str]:
        """The type tokens of all resources and components."""
        return frozenset(self._classes)

    @cache  # noqa: B019 - schemas live as long as the process: `for_package` keeps them
    def resource(self, token: str) -> ResourceSchema:
        """Return the schema of a type such as "aws:s3/bucket:Bucket". Raises UnknownTypeError."""
        if token not in self._classes:
            raise UnknownTypeError(self._unknown(token))
        module_name, class_name = self._classes[token]
        resource = cast("type[pulumi.Resource]", getattr(importlib.import_module(module_name), class_name))
        return ResourceSchema(
            token=token,
            package=self.package,
            version=self.version,
            inputs=argument_properties(_arguments_of(resource)),
            outputs=output_properties(resource),
        )

    def _load(self) -> tuple[str, Mapping[str, tuple[str, str]]]:
        found = importlib.util.find_spec(self._module)
        if found is None or found.origin is None:
            raise RehearsalError(
                f"provider {self.package!r}: its SDK is not installed; "
                f"install it with `pip install '{_requirement(self.package)}'`"
            )
        version = metadata.version(f"pulumi-{self.package}")
        return version, dict(_registered_classes(Path(found.origin)))

    def _unknown(self, token: str) -> str:
        close = difflib.get_close_matches(token, self._classes, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        return f"pulumi-{self.package} {self.version} has no type {token!r}{hint}"


def _requirement(package: str) -> str:
    return f"holdfast[{_EXTRAS[package]}]" if package in _EXTRAS else f"pulumi-{package}"


def _registered_classes(package_init: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield token → (module, class) from the table each SDK's `__init__` registers.

    Read from the source: importing a cloud's SDK costs a second, and a stack may use none of its types.
    """
    for node in ast.walk(ast.parse(package_init.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.keyword) or node.arg != "resource_modules":
            continue
        for module in cast("list[dict[str, object]]", json.loads(ast.literal_eval(node.value))):
            classes = cast("dict[str, str]", module["classes"])
            yield from ((token, (str(module["fqn"]), name)) for token, name in classes.items())


def _arguments_of(resource: type[pulumi.Resource]) -> type:
    """Return the class of a resource's arguments.

    It is `<Class>Args`, or `<Class>InitArgs` where a nested type took that name.
    """
    module = vars(sys.modules[resource.__module__])
    for name in (f"{resource.__name__}InitArgs", f"{resource.__name__}Args"):
        if name in module:
            return cast("type", module[name])
    raise RehearsalError(f"{resource.__module__}.{resource.__name__} has no argument class to read")
