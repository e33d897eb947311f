"""The examples that the scenes play, as their users would apply them."""

from pathlib import Path
from typing import Final

import yaml

from rehearsal.errors import RehearsalError
from rehearsal.kube.summary import mapping, sequence
from scheduling.json import Json, JsonValue

JOBSET_ON_SPOT: Final = "jobset-spot"
JOBSET_ON_SPOT_GPUS: Final = "jobset-spot-gpu"


def load_example(project_root: Path, name: str, *, cloud: str = "local") -> Json:
    """The object in `examples/<cloud>/<name>.yaml`. Raises RehearsalError where there is none."""
    path = project_root / "examples" / cloud / f"{name}.yaml"
    try:
        document: JsonValue = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise RehearsalError(f"the example {path} cannot be read ({error}): restore it") from error
    return mapping(document)


def pod_count(jobset: Json) -> int:
    """How many pods a JobSet runs at a time."""
    count = 0
    for each in sequence(mapping(jobset.get("spec")).get("replicatedJobs")):
        job = mapping(each)
        replicas = job.get("replicas", 1)
        parallelism = mapping(mapping(job.get("template")).get("spec")).get("parallelism", 1)
        count += replicas * parallelism if isinstance(replicas, int) and isinstance(parallelism, int) else 0
    return count
