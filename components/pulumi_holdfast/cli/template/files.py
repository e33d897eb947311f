"""The files of a new project with one stack: at most ten, which depend on the wheel of a release. Pure.

The stack file is the one of this repository for the cloud, without what only this repository has; a line with a value that only
the user knows is marked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from typing import Final

from pulumi_holdfast.cli.template.workflows import project_workflow
from pulumi_holdfast.config.naming import is_dns_label
from pulumi_holdfast.ladder.errors import ConfigError

#: The clouds that a new project can use.
CLOUDS: Final = ("aws", "azure", "gcp")
#: The environment whose stack file is private and protected; every other one can be destroyed.
_PRODUCTION: Final = "prod"
#: Marks a line with a value that only the user knows.
MARK: Final = "# TODO: yours"

_SOURCES: Final = "pulumi_holdfast.cli.template.sources"
_WORKFLOWS: Final = ("preview", "deploy", "drift")
#: Addresses of documentation, and accounts, subscriptions and projects of no one.
_UNKNOWN: Final = re.compile(r"203\.0\.113\.|123456789012|00000000-0000-|holdfast-(?:dev|prod)\b")
_EDITOR_SCHEMA: Final = re.compile(r"# yaml-language-server: .*\n")

_PROGRAM: Final = '''\
"""The training clusters of this project: one for each file in stacks/."""

from pulumi_holdfast.stack_program import main

main()
'''
_PROJECT: Final = """\
name: training
description: Kubernetes clusters on which training runs on spot and has somewhere to fall back to
runtime:
  name: python
  options:
    toolchain: pip
    virtualenv: .venv
stackConfigDir: stacks
"""
_REQUIREMENTS: Final = """\
# The wheel of a release. Holdfast is on no package index: a package of that name on PyPI is another program.
./wheels/{wheel}[{cloud},policy]
"""
_IGNORED: Final = """\
.rehearsal/
.tools/
.venv/
__pycache__/
dist/
"""


@dataclass(frozen=True, kw_only=True)
class StackName:
    """A name such as `aws-dev`: a cloud and an environment."""

    cloud: str
    environment: str

    def __str__(self) -> str:
        """The name of the stack and of its project's folder."""
        return f"{self.cloud}-{self.environment}"


def read_stack_name(text: str) -> StackName:
    """The cloud and the environment in a name. Raises ConfigError for an unknown cloud or a name that is no label."""
    cloud, _, environment = text.partition("-")
    if cloud not in CLOUDS:
        close = get_close_matches(cloud.lower(), CLOUDS, n=1)
        raise _invalid(text, f"a name that begins with {', '.join(CLOUDS)}", (close or CLOUDS)[0])
    if not is_dns_label(environment) or not is_dns_label(text):
        raise _invalid(
            text, "a cloud, a hyphen and an environment of lower-case letters, digits and hyphens", cloud
        )
    return StackName(cloud=cloud, environment=environment)


def _invalid(text: str, allowed: str, cloud: str) -> ConfigError:
    return ConfigError.of(field="NAME", value=text, allowed=allowed, fix=f"Write, for example, {cloud}-dev.")


def project_files(name: StackName, version: str, *, stack_file: str | None = None) -> Mapping[str, str]:
    """The text of each file of a project, by path; `stack_file` replaces the stack file of the template."""
    wheel = f"holdfast-{version}-py3-none-any.whl"
    workflows = {f".github/workflows/{each}.yaml": _workflow(each, name.cloud) for each in _WORKFLOWS}
    readme = source("README.md.tpl").format(
        stack=name,
        cloud=name.cloud,
        version=version,
        wheel=wheel,
        variables=", ".join(f"`{each}`" for each in _variables(workflows, name.cloud)),
    )
    return {
        "README.md": readme,
        "Pulumi.yaml": _PROJECT,
        "__main__.py": _PROGRAM,
        f"stacks/Pulumi.{name}.yaml": _stack_file(name) if stack_file is None else stack_file,
        "requirements.txt": _REQUIREMENTS.format(wheel=wheel, cloud=name.cloud),
        ".gitignore": _IGNORED,
        "renovate.json5": source("renovate.json5.tpl"),
        **workflows,
    }


def source(name: str) -> str:
    """The text of a file that projects are made of, such as `Pulumi.aws-dev.yaml`."""
    return files(_SOURCES).joinpath(name).read_text(encoding="utf-8")


def marked_lines(text: str) -> Sequence[tuple[int, str]]:
    """The numbers and texts of the lines that the user fills in."""
    return [
        (number, line.removesuffix(MARK).strip())
        for number, line in enumerate(text.splitlines(), start=1)
        if line.endswith(MARK)
    ]


def _stack_file(name: StackName) -> str:
    environment = _PRODUCTION if name.environment == _PRODUCTION else "dev"
    text = _EDITOR_SCHEMA.sub("", source(f"Pulumi.{name.cloud}-{environment}.yaml"))
    lines = re.sub(r"(?<!\S)\(?docs/", lambda found: found[0].replace("docs", "Holdfast's docs"), text)
    return "".join(
        f"{line}  {MARK}\n" if _UNKNOWN.search(line) else f"{line}\n" for line in lines.splitlines()
    )


def _workflow(name: str, cloud: str) -> str:
    return project_workflow(
        source(f"{name}.yaml"), action=source("action.yaml"), makefile=source("Makefile.txt"), cloud=cloud
    )


def _variables(workflows: Mapping[str, str], cloud: str) -> Sequence[str]:
    """The variables of a cloud that the workflows read."""
    read = re.findall(rf"vars\.({cloud.upper()}_\w+)", "".join(workflows.values()))
    return sorted(set(read))
