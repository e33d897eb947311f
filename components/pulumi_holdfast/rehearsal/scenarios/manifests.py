"""The example manifests that scenarios apply."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import yaml

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import REPOSITORY

_ACCOUNT: Final = "serviceAccountName"
JOBSET_ON_SPOT: Final = "jobset-spot"
JOBSET_ON_SPOT_GPUS: Final = "jobset-spot-gpu"


def load_example(project_root: Path, name: str, *, cloud: str = "local") -> Json:
    """Return the object in `examples/<cloud>/<name>.yaml`, of a project without examples that of the package.

    Raises RehearsalError if there is none.
    """
    own = project_root / "examples"
    path = (own if own.is_dir() else REPOSITORY / "examples") / cloud / f"{name}.yaml"
    try:
        document: JsonValue = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise RehearsalError(f"the example {path} cannot be read ({error}): restore it") from error
    return mapping(document)


def acting_as(obj: Json, service_account: str) -> Json:
    """Return an object with `service_account` in place of every service account it names.

    An example names that of one environment; users set the one of their namespace.
    """
    return mapping(_acting_as(obj, service_account))


def _acting_as(value: JsonValue, service_account: str) -> JsonValue:
    if isinstance(value, Mapping):
        return {
            key: service_account if key == _ACCOUNT else _acting_as(each, service_account)
            for key, each in value.items()
        }
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    return [_acting_as(each, service_account) for each in sequence(value)]


def pod_count(jobset: Json) -> int:
    """The number of pods that a JobSet runs at a time."""
    count = 0
    for each in sequence(mapping(jobset.get("spec")).get("replicatedJobs")):
        job = mapping(each)
        replicas = job.get("replicas", 1)
        parallelism = mapping(mapping(job.get("template")).get("spec")).get("parallelism", 1)
        count += replicas * parallelism if isinstance(replicas, int) and isinstance(parallelism, int) else 0
    return count
