"""Dependencies point one way, and what must not reach the outside does not."""

import re
from collections.abc import Callable, Collection

from tests.support.sources import PACKAGES, Module, modules

#: What each package may import of ours. All of them share `scheduling`, which is pure.
ALLOWED = {
    "scheduling": frozenset[str](),
    "components": frozenset({"scheduling"}),
    "infra": frozenset({"components", "policies", "scheduling"}),
    "policies": frozenset({"scheduling"}),
    "fallback": frozenset({"scheduling"}),
    "analysis": frozenset({"fallback", "scheduling"}),
    "plugin": frozenset({"fallback", "scheduling"}),
    "simulator": frozenset({"infra", "scheduling"}),
    "rehearsal": frozenset({"infra", "scheduling", "simulator"}),
}

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

# The modules of each cloud's program that call it: every call reads.
QUESTIONS = frozenset(
    {
        "components/pulumi_holdfast/aws/preflight/existing.py",
        "components/pulumi_holdfast/aws/preflight/existing_cluster.py",
        "components/pulumi_holdfast/aws/preflight/queries.py",
        "components/pulumi_holdfast/aws/preflight/reservations.py",
        "components/pulumi_holdfast/gcp/preflight/existing_cluster.py",
        "components/pulumi_holdfast/gcp/preflight/queries.py",
        "components/pulumi_holdfast/azure/preflight/existing_cluster.py",
        "components/pulumi_holdfast/azure/preflight/queries.py",
    }
)

CLOUD_SDKS = frozenset({"pulumi_aws", "pulumi_gcp", "pulumi_azure_native"})


def root_of(name: str) -> str:
    """`pulumi_holdfast.kubernetes.karpenter_pool` → `components`, `pulumi_aws.ec2` → `pulumi_aws`."""
    return name.removeprefix("holdfast.").partition(".")[0]


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


def test_a_package_imports_only_packages_below_it() -> None:
    def is_above(module: Module, name: str) -> bool:
        return root_of(name) in {*PACKAGES} - {module.package} - ALLOWED[module.package]

    assert not imported(is_above), f"packages may import {ALLOWED} of ours"


def test_a_module_is_imported_by_its_one_name() -> None:
    assert not imported(lambda _, name: name.partition(".")[0] in PACKAGES), (
        "write `holdfast.` before it: an installed package has no such name"
    )


def test_a_component_sees_its_arguments_and_not_its_surroundings() -> None:
    packages = ("components", "scheduling")
    assert not imported(lambda _, name: root_of(name) in SURROUNDINGS, *packages), (
        "it reaches outside; pass the value in as an argument"
    )
    readers = [module.path for module in modules(*packages) if "pulumi.Config" in module.text]
    assert not readers, "only components/pulumi_holdfast/config reads configuration"


def test_rules_and_facts_need_no_cloud_sdk() -> None:
    assert not imported(lambda _, name: root_of(name) in CLOUD_SDKS, "scheduling", "policies", "fallback"), (
        "it must be importable with no cloud SDK installed"
    )


def test_scheduling_is_pure() -> None:
    assert not imported(lambda _, name: root_of(name) in {"pulumi", "pydantic"}, "scheduling"), (
        "it is shared by the policies and the controller"
    )


def test_the_program_makes_components_and_no_bare_resources() -> None:
    assert not imported(
        lambda _, name: root_of(name).startswith("pulumi_") and name != "pulumi", "infra", exempt=QUESTIONS
    ), "resources are made inside components"
    asking = [module for module in modules("infra") if module.path in QUESTIONS]
    assert len(asking) == len(QUESTIONS), "the modules that ask are where they were"
    makers = [module.path for module in asking if re.search(r"\bResourceOptions\b", module.text)]
    assert not makers, "what asks makes nothing"


def test_no_module_is_a_bin_for_leftovers() -> None:
    bins = {"helper", "helpers", "util", "utils", "common", "manager", "misc", "junk"}
    wrong = [
        module.path
        for module in modules()
        if bins.intersection(module.path.removesuffix(".py").replace("/", "_").split("_"))
    ]
    assert not wrong, "name it for the concept it holds"
