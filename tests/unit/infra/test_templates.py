"""What `pulumi new` copies: each template asks for what only the user knows, and its stack is the cloud's development stack."""

from pathlib import Path
from typing import Final

import pytest
import yaml

from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.stack_program import load_platform

ROOT: Final = Path(__file__).parents[3]
CLOUDS: Final = ("aws", "azure", "gcp")
#: What a user answers where the template has no default.
ANSWERS: Final = {"gcp:project": "holdfast-dev"}
TEMPLATES: Final = tuple(
    f"{cloud}{language}" for cloud in CLOUDS for language in ("", "-yaml", "-typescript")
)
every_cloud = pytest.mark.parametrize("cloud", CLOUDS)


def read(path: Path) -> Json:
    return mapping(yaml.safe_load(path.read_text("utf-8")))


def asked(cloud: str) -> Json:
    """The configuration that a template asks for, with its defaults and ANSWERS."""
    prompts = mapping(mapping(read(ROOT / f"templates/{cloud}/Pulumi.yaml")["template"])["config"])
    return {key: mapping(prompt).get("default") or ANSWERS[key] for key, prompt in prompts.items()}


def arguments(cloud: str, text: str) -> Json:
    """The arguments of a component, as its cloud's development stack has them."""
    found = mapping(yaml.safe_load(text))
    return {"cloud": cloud, **{key: value for key, value in found.items() if key != "location"}}


def development(cloud: str) -> Json:
    """The development stack of a cloud, with the variable of the templates for the user's address."""
    text = (ROOT / f"templates/{cloud}/stacks/Pulumi.dev.yaml").read_text("utf-8")
    stack = mapping(yaml.safe_load(text.replace("203.0.113.0/24", "clientCidr")))
    return mapping(mapping(stack["config"])[PLATFORM])


@every_cloud
def test_a_program_in_yaml_has_the_arguments_of_the_development_stack(cloud: str) -> None:
    resources = mapping(read(ROOT / f"templates/{cloud}-yaml/Pulumi.yaml")["resources"])
    given = mapping(mapping(resources["training"])["properties"])
    text = yaml.safe_dump(given).replace("${clientCidr}", "clientCidr")
    assert arguments(cloud, text) == development(cloud)


@every_cloud
def test_a_program_in_typescript_has_the_arguments_of_the_development_stack(cloud: str) -> None:
    program = (ROOT / f"templates/{cloud}-typescript/index.ts").read_text("utf-8")
    # An object literal of TypeScript is a mapping of YAML.
    literal = program.partition('("training", ')[2].partition(");")[0]
    assert arguments(cloud, literal) == development(cloud)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_prompt_says_what_it_asks_for(template: str) -> None:
    shown = mapping(read(ROOT / f"templates/{template}/Pulumi.yaml")["template"])
    prompts = [mapping(prompt) for prompt in mapping(shown["config"]).values()]
    assert prompts
    assert all(prompt["description"] for prompt in [shown, *prompts])


@every_cloud
def test_the_stack_is_the_development_stack_of_the_cloud(cloud: str) -> None:
    theirs = mapping(read(ROOT / f"templates/{cloud}/stacks/Pulumi.dev.yaml")["config"])
    ours = mapping(read(ROOT / f"stacks/Pulumi.{cloud}-dev.yaml")["config"])
    assert {**theirs, **asked(cloud)} == ours


@every_cloud
def test_the_stack_with_the_answers_is_a_valid_platform(cloud: str, tmp_path: Path) -> None:
    theirs = mapping(read(ROOT / f"templates/{cloud}/stacks/Pulumi.dev.yaml")["config"])
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(yaml.safe_dump({"config": {**theirs, **asked(cloud)}}), "utf-8")
    assert load_platform(file).cloud == mapping(theirs[PLATFORM])["cloud"] == cloud


@every_cloud
def test_the_package_is_installed_from_a_url_and_never_by_its_name_alone(cloud: str) -> None:
    """The name belongs to another project on PyPI."""
    text = (ROOT / f"templates/{cloud}/requirements.txt").read_text("utf-8")
    required = [line for line in text.splitlines() if not line.startswith("#")]
    assert required == [f"pulumi-holdfast[{cloud},policy] @ ${{HOLDFAST}}"]
