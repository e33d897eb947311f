"""Dependencies point one way, and what must not reach the outside does not."""

import re
from collections.abc import Callable, Collection

from tests.support.sources import Module, modules

CLOUDS = ("aws", "azure", "gcp", "local")

#: Modules through which a component could read its surroundings instead of its arguments.
SURROUNDINGS = frozenset(
    {
        "os",
        "subprocess",
        "socket",
        "urllib",
        "http",
        "requests",
        "httpx",
        "boto3",
        "google",
        "azure",
        "kubernetes",
    }
)

CLOUD_SDKS = frozenset({"pulumi_aws", "pulumi_gcp", "pulumi_azure_native"})


def root_of(name: str) -> str:
    """`pulumi_aws.ec2` → `pulumi_aws`."""
    return name.partition(".")[0]


def imported(
    names: Callable[[Module, str], bool], *packages: str, exempt: Collection[str] = ()
) -> dict[str, list[tuple[str, int]]]:
    """The imports, with their lines, of which `names` is true, by module of the packages (all by default)."""
    found = {
        module.path: sorted((name, line) for name, line in module.imports() if names(module, name))
        for module in modules(*packages)
        if module.path not in exempt
    }
    return {path: imports for path, imports in found.items() if imports}


def test_a_component_sees_its_arguments_and_not_its_surroundings() -> None:
    parts = [module.path for module in modules(*CLOUDS) if "/preflight/" in module.path]
    packages = ("kubernetes", "ladder", *CLOUDS)
    found = imported(lambda _, name: root_of(name) in SURROUNDINGS, *packages, exempt=parts)
    assert not found
    readers = [module.path for module in modules(*packages) if "pulumi.Config" in module.text]
    assert not readers


def test_rules_and_facts_need_no_cloud_sdk() -> None:
    packages = ("ladder", "program", "policies", "controller", "config")
    assert not imported(lambda _, name: root_of(name) in CLOUD_SDKS, *packages)


def test_the_domain_is_pure() -> None:
    assert not imported(lambda _, name: root_of(name) in {"pulumi", "pydantic"}, "ladder")


def test_what_asks_a_cloud_makes_nothing() -> None:
    asking = [module for module in modules(*CLOUDS) if "/preflight/" in module.path]
    assert len(asking) > 12
    assert not [module.path for module in asking if re.search(r"\bResourceOptions\b", module.text)]


def test_no_module_is_a_bin_for_leftovers() -> None:
    bins = {"helper", "helpers", "util", "utils", "common", "manager", "misc", "junk"}
    wrong = [
        module.path
        for module in modules()
        if bins.intersection(module.path.removesuffix(".py").replace("/", "_").split("_"))
    ]
    assert not wrong
