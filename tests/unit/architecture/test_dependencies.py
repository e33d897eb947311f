"""Dependencies point one way, and what must not reach the outside does not."""

import re

import pytest

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
        "infra/aws/preflight/existing.py",
        "infra/aws/preflight/existing_cluster.py",
        "infra/aws/preflight/queries.py",
        "infra/aws/preflight/reservations.py",
        "infra/gcp/preflight/existing_cluster.py",
        "infra/gcp/preflight/queries.py",
        "infra/azure/preflight/existing_cluster.py",
        "infra/azure/preflight/queries.py",
    }
)

CLOUD_SDKS = frozenset({"pulumi_aws", "pulumi_gcp", "pulumi_azure_native"})


def root_of(name: str) -> str:
    """`holdfast.components.pools.karpenter` → `components`, `pulumi_aws.ec2` → `pulumi_aws`."""
    return name.removeprefix("holdfast.").partition(".")[0]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.path)
def test_a_package_imports_only_packages_below_it(module: Module) -> None:
    ours = {
        (root_of(name), line)
        for name, line in module.imports()
        if root_of(name) in PACKAGES and root_of(name) != module.package
    }
    wrong = sorted((name, line) for name, line in ours if name not in ALLOWED[module.package])
    assert not wrong, f"{module.path} may import {sorted(ALLOWED[module.package])} of ours, not {wrong}"


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.path)
def test_a_module_is_imported_by_its_one_name(module: Module) -> None:
    wrong = sorted((name, line) for name, line in module.imports() if name.partition(".")[0] in PACKAGES)
    assert not wrong, (
        f"{module.path} imports {wrong} without `holdfast.`: an installed package has no such name"
    )


@pytest.mark.parametrize("module", modules("components", "scheduling"), ids=lambda module: module.path)
def test_a_component_sees_its_arguments_and_not_its_surroundings(module: Module) -> None:
    wrong = sorted((name, line) for name, line in module.imports() if root_of(name) in SURROUNDINGS)
    assert not wrong, f"{module.path} reaches outside through {wrong}; pass the value in as an argument"
    assert "pulumi.Config" not in module.text, f"{module.path} reads configuration; infra/config alone does"


@pytest.mark.parametrize(
    "module", modules("scheduling", "policies", "fallback"), ids=lambda module: module.path
)
def test_rules_and_facts_need_no_cloud_sdk(module: Module) -> None:
    wrong = sorted((name, line) for name, line in module.imports() if root_of(name) in CLOUD_SDKS)
    assert not wrong, f"{module.path} must be importable with no cloud SDK installed, yet imports {wrong}"


@pytest.mark.parametrize("module", modules("scheduling"), ids=lambda module: module.path)
def test_scheduling_is_pure(module: Module) -> None:
    wrong = sorted((name, line) for name, line in module.imports() if root_of(name) in {"pulumi", "pydantic"})
    assert not wrong, (
        f"{module.path} is shared by the policies and the controller, so it imports neither {wrong}"
    )


@pytest.mark.parametrize("module", modules("infra"), ids=lambda module: module.path)
def test_the_program_makes_components_and_no_bare_resources(module: Module) -> None:
    wrong = sorted(
        (name, line)
        for name, line in module.imports()
        if root_of(name).startswith("pulumi_") and name != "pulumi"
    )
    if module.path in QUESTIONS:
        assert not re.search(r"\bResourceOptions\b", module.text), f"{module.path} asks and makes nothing"
        return
    assert not wrong, f"{module.path} imports {wrong}; resources are made inside components"


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.path)
def test_no_module_is_a_bin_for_leftovers(module: Module) -> None:
    words = set(module.path.removesuffix(".py").replace("/", "_").split("_"))
    bins = words & {"helper", "helpers", "util", "utils", "common", "manager", "misc", "junk"}
    assert not bins, f"{module.path} is named {bins}: name it for the concept it holds"
