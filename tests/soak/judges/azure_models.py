"""What Azure publishes about the requests that create resources: the models of the packages azure-mgmt-* on PyPI.

They are read as text, so that no package needs to be installed. The models of one package and API version refer to
each other by name; a request's path has rules of its own, for the names of the resource and its parents.
"""

import ast
import importlib.util
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias, cast

from pulumi_holdfast.rehearsal.clouds.sdk import find_resource
from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.soak.judges.api_models import Field, Model, Shape

Tables: TypeAlias = "dict[str, dict[str, dict[str, object]]]"

_RULES: Final = {
    "pattern": "pattern",
    "minimum": "least",
    "maximum": "most",
    "min_length": "shortest",
    "max_length": "longest",
}
_VERSION: Final = re.compile(r"Uses Azure REST API version ([0-9a-z-]+)")


class AzurePackage(Model):
    """The models of an API version in a package; one with a single version has it without a folder of its own."""

    def __init__(self, packages: Path, service: str, version: str) -> None:
        folder = packages / "azure/mgmt" / service
        folder = folder if (folder / "models").is_dir() else folder / f"v{version.replace('-', '_')}"
        if not (folder / "models/_models_py3.py").is_file():
            raise RehearsalError(f"{folder} has no models")
        self._folder = folder
        self._builders = [*_puts(folder / "operations")]
        self._classes = {
            one.name: one
            for one in _parsed(folder / "models/_models_py3.py").body
            if isinstance(one, ast.ClassDef)
        }

    def version(self, kind: str) -> str:
        """Return the API version of the request that creates a type, such as `Microsoft.Network/natGateways`."""
        return re.findall(r"'(\d{4}-\d{2}-\d{2}(?:-preview)?)'", ast.unparse(self._creating(kind)))[0]

    def shape(self, name: str) -> Shape:
        """Return a class, or the path of a type's request: `Microsoft.Network/natGateways`."""
        if name in self._classes:
            return {"type": name}
        return {"type": "path", "members": self._labels(name)}

    def members(self, shape: Shape) -> Mapping[str, Shape]:
        """Return the fields that a client sets, under the names of the API and of the package."""
        if shape["type"] == "path":
            return cast("Mapping[str, Shape]", shape["members"])
        # `[Name]` is a list, and `{Name}` a map.
        tables = self._tables(str(shape["type"]).strip("[]{}"))
        made: dict[str, Shape] = {}
        for name, one in tables["_attribute_map"].items():
            rules = tables["_validation"].get(name, {})
            if not rules.get("readonly"):
                field = {**rules, "type": one["type"]}
                made[name.replace("_", "")] = field
                made[str(one["key"]).rpartition(".")[2]] = field
        return made

    def required(self, shape: Shape, name: str) -> bool:
        """The provider fills in the names in a path, such as the resource's own."""
        return shape["type"] != "path" and bool(self.members(shape)[name].get("required"))

    def rules(self, shape: Shape) -> Field:
        # The rules of a list are those of the list, not of its items.
        of_items = not str(shape["type"]).startswith("[")
        return {ours: shape[theirs] for theirs, ours in _RULES.items() if of_items and theirs in shape}

    def _tables(self, name: str) -> Tables:
        """Return the tables of a class with those of its parents."""
        found: Tables = {"_attribute_map": {}, "_validation": {}}
        one = self._classes.get(name)
        if one is None:
            return found
        for base in one.bases:
            for title, table in self._tables(ast.unparse(base).rpartition(".")[2]).items():
                found[title] |= table
        for statement in one.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                title = statement.targets[0].id
                if title in found:
                    found[title] |= ast.literal_eval(statement.value)
        return found

    def _labels(self, kind: str) -> Mapping[str, Shape]:
        """Return the labels in the path of a request with their rules."""
        made: dict[str, Shape] = {}
        for one in ast.walk(self._creating(kind)):
            if isinstance(one, ast.Dict):
                for key, value in zip(one.keys, one.values, strict=True):
                    if (
                        isinstance(key, ast.Constant)
                        and isinstance(value, ast.Call)
                        and ".url" in ast.unparse(value.func)
                    ):
                        rules = {each.arg: each.value for each in value.keywords if each.arg in _RULES}
                        made[str(key.value)] = {
                            "type": "str",
                            **{str(name): ast.literal_eval(rule) for name, rule in rules.items()},
                        }
        return made

    def _creating(self, kind: str) -> ast.FunctionDef:
        """Return the function that builds the request that creates a type."""
        ending = "/".join(one if "." in one else f"{one}/[^/]+" for one in kind.split("/"))
        path = re.compile(f"/(subscriptions/.*|{{\\w+}}/.*)?{ending}", re.IGNORECASE)
        for one, texts in self._builders:
            if any(path.fullmatch(text) for text in texts):
                return one
        raise RehearsalError(f"{self._folder} creates no {kind}")


def _puts(folder: Path) -> Iterator[tuple[ast.FunctionDef, frozenset[str]]]:
    """Yield the functions that build requests with PUT, with the texts in them."""
    for file in sorted(folder.glob("_*operations.py")):
        for one in _parsed(file).body:
            if isinstance(one, ast.FunctionDef):
                texts = {str(each.value) for each in ast.walk(one) if isinstance(each, ast.Constant)}
                if "PUT" in texts:
                    yield one, frozenset(texts)


def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def api_version(token: str) -> str:
    """Return the API version that the installed SDK uses for a type."""
    _, module, name = token.split(":")
    spec = importlib.util.find_spec("pulumi_azure_native")
    folder = Path(str(spec.origin)).parent / module if spec else Path(module)
    resource = find_resource(folder, name)
    found = _VERSION.search(resource.text) if resource else None
    if found is None:
        raise RehearsalError(f"{token}: its documentation names no API version")
    return found[1]
