"""The program as the engine runs it, and as tools read it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pulumi
import pytest
import yaml

from holdfast.infra.program import load_platform, provider_packages, run
from holdfast.scheduling.errors import ConfigError
from tests.support.builders.configurations import platform_document
from tests.support.fakes.pulumi_engine import record

if TYPE_CHECKING:
    from collections.abc import Generator

    from holdfast.scheduling.json import JsonValue

ROOT = Path(__file__).parents[3]
CLOUD_SDKS = ("pulumi_aws", "pulumi_gcp", "pulumi_azure_native")


@pytest.fixture(autouse=True)
def _no_configuration_is_left_behind() -> Generator[None]:
    pulumi.runtime.set_all_config({})
    yield
    pulumi.runtime.set_all_config({})


def configure(document: JsonValue) -> None:
    pulumi.runtime.set_all_config({"holdfast:platform": json.dumps(document)})


def stack_file(folder: Path, content: str) -> Path:
    file = folder / "Pulumi.local.yaml"
    file.write_text(content)
    return file


def test_the_program_composes_the_configured_stack() -> None:
    configure(platform_document())
    recording = record(run)
    assert recording.of("TrainingNamespace"), "the whole of it, down to the namespaces"


def test_an_invalid_configuration_stops_the_program_before_any_registration() -> None:
    configure(platform_document(lambda d: d.update(cloud="openstack")))
    with pytest.raises(pulumi.RunError) as refused:
        record(run)
    assert (
        str(refused.value)
        == 'holdfast:platform.cloud: got "openstack"; allowed: local, aws, azure, gcp. Write `cloud: local`.'
    ), "one message, and the kind of error which the engine shows without a traceback"


@pytest.mark.parametrize("text", ["not JSON", '"a text"', "[]"])
def test_a_configuration_that_is_not_a_mapping_is_a_problem(text: str) -> None:
    pulumi.runtime.set_all_config({"holdfast:platform": text})
    with pytest.raises(pulumi.RunError, match=r"^holdfast:platform: got .*; allowed: a mapping"):
        record(run)


def test_a_stack_without_configuration_is_a_problem() -> None:
    with pytest.raises(pulumi.RunError, match=r"^holdfast:platform: got nothing; "):
        record(run)


def test_an_invalid_configuration_registers_nothing() -> None:
    configure(platform_document(lambda d: d.update(cloud="openstack")))
    refused = False

    def attempt() -> None:
        nonlocal refused
        try:
            run()
        except pulumi.RunError:
            refused = True

    recording = record(attempt)
    assert refused, "the configuration names a cloud that is not there"
    assert not recording.resources, "a half-made stack would have to be cleaned up by hand"


@pytest.mark.parametrize("file", sorted((ROOT / "stacks").glob("Pulumi.*.yaml")), ids=lambda file: file.name)
def test_every_stack_file_of_the_repository_is_valid(file: Path) -> None:
    platform = load_platform(file)
    assert platform.pools, f"{file.name} is an example to start from"
    own = {"aws": ("aws",), "azure": ("azure-native",), "gcp": ("gcp",)}.get(platform.cloud, ())
    assert provider_packages(platform) == (*own, "kubernetes"), "no stack needs another cloud's provider"


def test_a_stack_file_parses_as_in_the_program(tmp_path: Path) -> None:
    file = stack_file(tmp_path, yaml.safe_dump({"config": {"holdfast:platform": platform_document()}}))
    assert [pool.name for pool in load_platform(file).pools] == ["cpu", "cpu-spot", "a100-spot", "a100"], (
        "tools and program see one configuration"
    )


@pytest.mark.parametrize(
    "content", ["", "config:", "config: {}", "config: []", "[]", "config: {holdfast:platfrom: {}}"]
)
def test_a_stack_file_without_a_platform_is_a_problem(tmp_path: Path, content: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_platform(stack_file(tmp_path, content))
    assert refused.value.problems[0].field == "holdfast:platform", "that is the key which is missing"


def test_invalid_yaml_is_a_problem_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 2") as refused:
        load_platform(stack_file(tmp_path, "config:\n  - {a: b"))
    assert "\n" not in str(refused.value), "the reason is one line"


@pytest.mark.parametrize("name", ["2026-01-01", "!!binary aGk=", "1", "~", "{1: 2}"])
def test_a_name_that_yaml_converts_is_a_problem(tmp_path: Path, name: str) -> None:
    content = f"config: {{holdfast:platform: {{cloud: {name}}}}}"
    with pytest.raises(ConfigError) as refused:
        load_platform(stack_file(tmp_path, content))
    assert refused.value.problems[0].field == "holdfast:platform.cloud", (
        "dates, bytes and numbers are values too"
    )


@pytest.mark.parametrize(
    "content", ["&a [*a]", "config: &a {holdfast:platform: *a}", "\\x00", "\x00", "config: 1: 2"]
)
def test_a_recursive_or_deep_stack_file_is_a_problem(tmp_path: Path, content: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_platform(stack_file(tmp_path, content))
    assert refused.value.problems, "whatever is in the file, its reader gets no traceback"


@pytest.mark.parametrize(
    "content",
    [
        "config:\n  aws:region: us-west-2\n  aws:region: eu-west-1\n",
        "config: {}\nconfig:\n  holdfast:platform: {}\n",
        "config:\n  holdfast:platform:\n    cloud: local\n    pools: [{name: a}, {name: b,\n      name: c}]\n",
    ],
)
def test_a_duplicate_key_is_a_problem_with_its_line(tmp_path: Path, content: str) -> None:
    with pytest.raises(ConfigError, match=r"the key \S+ is duplicated.* line [2-5]"):
        load_platform(stack_file(tmp_path, content))


def test_a_stack_file_in_another_encoding_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.local.yaml"
    file.write_bytes("config: {a: ü}".encode("latin-1"))
    with pytest.raises(ConfigError, match="cannot be read"):
        load_platform(file)


def test_a_missing_stack_file_is_a_problem_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"Pulumi\.nowhere\.yaml: got a file that cannot be read \(No such file"
    ):
        load_platform(tmp_path / "Pulumi.nowhere.yaml")


def test_a_local_stack_imports_no_cloud_sdk() -> None:
    program = (
        "import sys; from pathlib import Path; from holdfast.infra.program import load_platform; import holdfast.infra.local.stack; "
        f"load_platform(Path({str(ROOT / 'stacks/Pulumi.local.yaml')!r})); "
        f"print([name for name in {CLOUD_SDKS!r} if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]", "a user of one cloud installs one SDK"


def test_parsing_a_configuration_imports_no_sdk() -> None:
    program = (
        "import sys; from pathlib import Path; from holdfast.infra.program import load_platform; "
        f"load_platform(Path({str(ROOT / 'stacks/Pulumi.local.yaml')!r})); print('pulumi_kubernetes' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "False", "`make up` reads it several times, and an SDK takes half a second"
