"""The types one provider package offers, looked up in its installed SDK."""

import ast
import difflib
import importlib.util
import json
import re
import threading
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import cast

from holdfast.simulator.clouds.schema.annotations import argument_properties, output_properties
from holdfast.simulator.clouds.schema.source import SdkClass, find_in, find_resource
from holdfast.simulator.clouds.schema.types import ResourceSchema
from holdfast.simulator.errors import RehearsalError

# Which extra of the project installs a package's SDK.
_EXTRAS = {"aws": "aws", "gcp": "gcp", "azure-native": "azure"}
# The table of resources each SDK registers: a literal, first argument of a call in its `__init__`.
_TABLE = re.compile(r'^    resource_modules=(?P<literal>""".*?""")', re.MULTILINE | re.DOTALL)


class UnknownTypeError(RehearsalError):
    """A type token the installed SDK does not have."""


class Schema:
    """The resource types of one package; what has been looked up is kept."""

    def __init__(self, package: str) -> None:
        self.package = package
        self._root = _sdk_folder(package)
        self.version = metadata.version(f"pulumi-{package}")
        self._classes = dict(_registered_classes(self._root))
        self._known: dict[str, ResourceSchema] = {}
        self._lock = threading.Lock()

    @staticmethod
    @cache
    def for_package(package: str) -> "Schema":
        """Return the schema of a package, such as "aws" or "azure-native".

        Raises RehearsalError where its SDK is not installed.
        """
        return Schema(package)

    @property
    def tokens(self) -> frozenset[str]:
        """The type tokens of all resources."""
        return frozenset(self._classes)

    def resource(self, token: str) -> ResourceSchema:
        """Return the schema of a type such as "aws:s3/bucket:Bucket". Raises UnknownTypeError."""
        with self._lock:
            if token not in self._known:
                self._known[token] = self._look_up(token)
            return self._known[token]

    def _look_up(self, token: str) -> ResourceSchema:
        if token not in self._classes:
            raise UnknownTypeError(self._unknown(token))
        module, name = self._classes[token]
        resource = find_resource(self._root.joinpath(*module.split(".")[1:]), name)
        arguments = _arguments_of(resource) if resource else None
        if resource is None or arguments is None:
            raise RehearsalError(
                f"{token}: no class {name} with its arguments in pulumi-{self.package} {self.version}"
            )
        return ResourceSchema(
            token=token,
            package=self.package,
            version=self.version,
            inputs=argument_properties(arguments),
            outputs=output_properties(resource),
        )

    def _unknown(self, token: str) -> str:
        close = difflib.get_close_matches(token, self._classes, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        return f"pulumi-{self.package} {self.version} has no type {token!r}{hint}"


def _sdk_folder(package: str) -> Path:
    found = importlib.util.find_spec(f"pulumi_{package.replace('-', '_')}")
    if found is None or found.origin is None:
        wanted = f"holdfast[{_EXTRAS[package]}]" if package in _EXTRAS else f"pulumi-{package}"
        raise RehearsalError(
            f"provider {package!r}: its SDK is not installed; install it with `pip install '{wanted}'`"
        )
    return Path(found.origin).parent


def _registered_classes(root: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield token → (module, class)."""
    table = _TABLE.search((root / "__init__.py").read_text(encoding="utf-8"))
    if table is None:
        raise RehearsalError(
            f"{root} registers no resources in the way of Pulumi's SDKs; is another version installed?"
        )
    for module in cast("list[dict[str, object]]", json.loads(ast.literal_eval(table["literal"]))):
        classes = cast("dict[str, str]", module["classes"])
        yield from ((token, (str(module["fqn"]), name)) for token, name in classes.items())


def _arguments_of(resource: SdkClass) -> SdkClass | None:
    """Return the class of a resource's arguments.

    It is `<Class>Args`, or `<Class>InitArgs` where a nested type took that name.
    """
    renamed = find_in(resource.file, f"{resource.name}InitArgs")
    return renamed or find_in(resource.file, f"{resource.name}Args")
