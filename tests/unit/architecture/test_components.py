"""Every component is built to the same four rules."""

import ast
from collections.abc import Iterator

import pytest

from tests.support.sources import Module, constructor, modules

#: Where components are: what every cluster gets, and the clouds.
PARTS = ("kubernetes", "aws", "azure", "gcp", "local")
COMPONENTS = [
    pytest.param(module, component, id=f"{module.path}::{component.name}")
    for module in modules(*PARTS)
    for component in module.components()
]
COMPONENT_NAMES = {component.name for module in modules(*PARTS) for component in module.components()}


def resource_calls(module: Module, component: ast.ClassDef) -> Iterator[ast.Call]:
    """Calls that make a resource: of a class of a provider SDK, or of one of our components."""
    sdk = {
        alias.asname or alias.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if not (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pulumi_holdfast"))
        and (node.module if isinstance(node, ast.ImportFrom) and node.module else alias.name).startswith(
            "pulumi_"
        )
    }
    for node in ast.walk(component):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        last = called.rpartition(".")[2]
        is_class = last[:1].isupper() and not last.endswith(("Args", "ArgsDict"))
        if is_class and (called.partition(".")[0] in sdk or last in COMPONENT_NAMES):
            yield node


def names_bound_to_child_options(component: ast.ClassDef) -> set[str]:
    """Variables of a component that hold `ResourceOptions(parent=self, …)` or a merge with one that does."""
    bound: set[str] = set()
    assignments = [node for node in ast.walk(component) if isinstance(node, ast.Assign)]
    for node in sorted(assignments, key=lambda node: node.lineno):
        text = ast.unparse(node.value)
        if "parent=self" in text or any(f"({name}," in text for name in bound):
            bound |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return bound


@pytest.mark.parametrize(("module", "component"), COMPONENTS)
def test_outputs_are_registered_once_and_last(module: Module, component: ast.ClassDef) -> None:
    body = constructor(component)
    calls = [
        node
        for node in ast.walk(body)
        if isinstance(node, ast.Call) and "register_outputs" in ast.unparse(node.func)
    ]
    assert len(calls) == 1, f"{component.name} in {module.path} registers its outputs {len(calls)} times"
    assert "register_outputs" in ast.unparse(body.body[-1]), (
        f"{component.name} does something after register_outputs, when the engine takes it for complete"
    )


@pytest.mark.parametrize(("module", "component"), COMPONENTS)
def test_every_child_has_its_component_as_parent(module: Module, component: ast.ClassDef) -> None:
    options = names_bound_to_child_options(component)
    for call in resource_calls(module, component):
        given = next((ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "opts"), "")
        assert "parent=self" in given or any(name in given for name in options), (
            f"{module.path}:{call.lineno} makes {ast.unparse(call.func)} outside its component: "
            "without parent=self it inherits no provider, no protection and no place in the tree"
        )


@pytest.mark.parametrize(("module", "component"), COMPONENTS)
def test_a_component_is_made_of_name_args_and_options(module: Module, component: ast.ClassDef) -> None:
    names = [argument.arg for argument in constructor(component).args.args]
    assert names in (["self", "name", "args", "opts"], ["self", "name", "opts"]), (
        f"{component.name} in {module.path} takes {names}; a component takes (name, args, opts)"
    )


@pytest.mark.parametrize(("module", "component"), COMPONENTS)
def test_a_component_has_a_token_of_its_own_name(module: Module, component: ast.ClassDef) -> None:
    # Each cloud has a TrainingCluster.
    owner = module.path.split("/")[2] if component.name == "TrainingCluster" else "index"
    assert f"'holdfast:{owner}:{component.name}'" in ast.unparse(constructor(component)), (
        f"{component.name} in {module.path} must have the type token holdfast:{owner}:{component.name}"
    )


@pytest.mark.parametrize(("module", "component"), COMPONENTS)
def test_no_decision_rests_on_an_output(module: Module, component: ast.ClassDef) -> None:
    maybe_outputs = {f"args.{name}" for name in input_fields(module)} | {
        target.id
        for node in ast.walk(component)
        if isinstance(node, ast.Assign)
        and ("Output" in ast.unparse(node.value) or ".apply(" in ast.unparse(node.value))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(component):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            test = ast.unparse(node.test)
            wrong = [name for name in maybe_outputs if name in test and f"{name} is " not in test]
            assert not wrong, (
                f"{module.path}:{node.lineno}: `if {test}`: {wrong} may be an Output, which is always true"
            )


def input_fields(module: Module) -> set[str]:
    """Fields of the module's argument classes that may hold an Output."""
    return {
        ast.unparse(node.target)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.AnnAssign) and "Input[" in ast.unparse(node.annotation)
    }
