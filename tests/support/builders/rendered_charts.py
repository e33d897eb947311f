"""Renders real charts with the real Helm and our values."""

import json
import subprocess
from pathlib import Path
from typing import cast

import yaml

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.locate import find_tool


def rendered(chart: str, namespace: str, values: Json, folder: Path) -> list[Json]:
    """The objects of a release named like its chart; `folder` is an empty one."""
    workspace = Workspace.find()
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    command = (
        str(find_tool("helm", workspace)),
        "template",
        chart,
        str(workspace.charts_dir / chart),
        f"--namespace={namespace}",
        f"--values={file}",
        "--skip-crds",
    )
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, f"Helm rejects the values: {answer.stderr}"
    return [cast("Json", each) for each in yaml.load_all(answer.stdout, yaml.CSafeLoader) if each]
