"""What the last release registers for each stack file, and what an upgrade of such a stack does: `python -m tests.support.release_state` records it.

The steps of an upgrade are those of the engine, by the simulated providers' own comparison of inputs.
"""

import hashlib
import json
import lzma
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import grpc
from pulumi.runtime.proto import provider_pb2

from holdfast.infra.program import load_platform
from holdfast.scheduling.json import Json, JsonValue, mapping, sequence
from holdfast.simulator.clouds.provider import CloudProvider
from holdfast.simulator.clouds.simulated_clouds import SimulatedClouds, no_nodes
from holdfast.simulator.pulumi.diff import changes, diff_response
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.kubeconfig import read_connection
from holdfast.simulator.pulumi.values import to_struct
from tests.support.builders import aws_stacks, azure_stacks, gcp_stacks, local_stacks
from tests.support.fakes.pulumi_engine import Recorded, Recording

ROOT: Final = Path(__file__).parents[2]
FILE: Final = ROOT / "tests" / "fixtures" / "release_state.json.xz"


_RELEASE: Final = "kubernetes:helm.sh/v3:Release"
_PROVIDER: Final = "pulumi:providers:"
#: The fields whose change makes the Kubernetes plugin replace an object of our stacks.
_IDENTITY: Final = ("apiVersion", "kind", "metadata.name", "metadata.namespace", "roleRef")
_IMMUTABLE: Final[Mapping[str, Sequence[str]]] = {
    "kubernetes:core/v1:ConfigMap": ("data", "binaryData"),
    "kubernetes:core/v1:PersistentVolumeClaim": ("spec",),
    "kubernetes:core/v1:Secret": ("data", "stringData", "type"),
    "kubernetes:apps/v1:Deployment": ("spec.selector",),
    "kubernetes:storage.k8s.io/v1:StorageClass": ("parameters", "provisioner"),
}
#: A longer text is compared by its hash: the controller's program, the charts' values.
_LONGEST_TEXT: Final = 200
#: The local stack names folders of its checkout.
_CHECKOUT: Final = "/checkout"


@dataclass(frozen=True, kw_only=True)
class Step:
    """What an upgrade does to a resource: `create`, `update`, `replace` or `delete`, and the changed inputs."""

    kind: str
    urn: str
    changed: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One line, as a plan shows it."""
        kind, _, name = self.urn.rpartition("::")
        because = f" ({', '.join(self.changed)})" if self.changed else ""
        return f"{self.kind} {kind.rpartition('$')[2]} {name}{because}"


def project_version() -> str:
    """The version in pyproject.toml."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def stack_texts() -> Mapping[str, str]:
    """The stack files of this checkout, by stack."""
    files = sorted((ROOT / "stacks").glob("Pulumi.*.yaml"))
    return {file.stem.removeprefix("Pulumi."): file.read_text("utf-8") for file in files}


def registered(stack: str, text: str) -> Mapping[str, Json]:
    """What today's program registers for a stack with this file, by URN. Raises ConfigError for a file that it refuses."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        platform = load_platform(Path(file.name))
    if platform.cloud == "aws":
        recording = aws_stacks.composed(platform, name=stack)
    elif platform.cloud == "azure":
        recording = azure_stacks.composed(platform, name=stack)
    elif platform.cloud == "gcp":
        recording = gcp_stacks.composed(platform, name=stack)
    else:
        recording = local_stacks.composed(platform, name=stack)
    return _kept(recording)


def _kept(recording: Recording) -> Mapping[str, Json]:
    return {each.urn: kept_of(each) for each in recording if each.custom}


def kept_of(resource: Recorded) -> Json:
    """What is compared of a resource."""
    text = json.dumps(resource.inputs, default=str, sort_keys=True)
    inputs = cast("JsonValue", json.loads(text.replace(str(ROOT), _CHECKOUT)))
    return {
        "type": resource.type,
        "inputs": _shortened(inputs),
        "replaceOnChanges": sorted(resource.replace_on_changes),
        "ignoreChanges": sorted(resource.ignore_changes),
        "aliases": list(resource.aliases),
    }


def _shortened(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return {key: _shortened(inner) for key, inner in value.items()}
    if isinstance(value, str):
        is_long = len(value) > _LONGEST_TEXT and not value.startswith("{")
        return f"sha256:{hashlib.sha256(value.encode()).hexdigest()}" if is_long else value
    return [_shortened(inner) for inner in value] if isinstance(value, Sequence) else value


def recorded_state() -> Json:
    """The state of the last release: its version, its stack files, and the resources of each stack."""
    return cast("Json", json.loads(lzma.decompress(FILE.read_bytes())))


def upgrade(before: Mapping[str, Json], after: Mapping[str, Json]) -> Iterator[Step]:
    """The steps from one state to another, without what stays the same. An alias in the newer state is a resource's former URN."""
    before = _renamed(before, after)
    with tempfile.TemporaryDirectory() as folder:
        clouds = SimulatedClouds(
            folder=Path(folder), checkpoint=Path(folder) / "none", faults=Faults(), nodes=no_nodes
        )
        for urn in sorted({*before, *after}):
            if urn not in after or urn not in before:
                yield Step(kind="create" if urn in after else "delete", urn=urn)
            elif (step := _change(clouds, urn, before[urn], after[urn])) is not None:
                yield step


def _renamed(before: Mapping[str, Json], after: Mapping[str, Json]) -> Mapping[str, Json]:
    """The older state under the URNs of the newer one, where those have an alias."""
    now = {
        str(former): urn
        for urn, each in after.items()
        if urn not in before
        for former in sequence(each.get("aliases", []))
        if former not in after
    }
    return {now.get(urn, urn): each for urn, each in before.items()}


def _change(clouds: SimulatedClouds, urn: str, before: Json, after: Json) -> Step | None:
    ignored = {str(each) for each in sequence(after["ignoreChanges"])}
    old, new = (
        {key: value for key, value in mapping(each["inputs"]).items() if key not in ignored}
        for each in (before, after)
    )
    if old == new:
        return None
    answer = _diff(clouds, str(after["type"]), urn, old, new)
    forced = {str(each) for each in sequence(after["replaceOnChanges"])} & {*answer.diffs, "*"}
    replaced = (*answer.replaces, *sorted(forced))
    if not replaced and not answer.diffs:
        return None
    return Step(
        kind="replace" if replaced else "update", urn=urn, changed=replaced or tuple(sorted(answer.diffs))
    )


def _diff(clouds: SimulatedClouds, kind: str, urn: str, old: Json, new: Json) -> provider_pb2.DiffResponse:
    package = kind.partition(":")[0]
    if kind.startswith(_PROVIDER):
        before, after = (read_connection(each) for each in (old, new))
        is_another = before is not None and after is not None and before.cluster != after.cluster
        return provider_pb2.DiffResponse(
            diffs=sorted({*old, *new}), replaces=["kubeconfig"] if is_another else []
        )
    if package == "kubernetes":
        found = changes(old, new)
        fixed = ("name", "namespace") if kind == _RELEASE else (*_IDENTITY, *_IMMUTABLE.get(kind, ()))
        return diff_response(found, replacing=[each for each in found if each.within(fixed)])
    request = provider_pb2.DiffRequest(
        urn=urn, type=kind, name=urn.rpartition("::")[2], old_inputs=to_struct(old), news=to_struct(new)
    )
    provider = cast("CloudProvider", clouds.provider(package))
    # The context of a call is not used.
    return provider.Diff(request, cast("grpc.ServicerContext", None))


def main() -> int:
    """Record the state of this version."""
    files = stack_texts()
    state = {
        "version": project_version(),
        "files": files,
        "stacks": {stack: registered(stack, text) for stack, text in files.items()},
    }
    text = json.dumps(state, sort_keys=True, separators=(",", ":"))
    FILE.write_bytes(lzma.compress(text.encode(), preset=9))
    print(
        f"{FILE.relative_to(ROOT)}: {state['version']}, {len(text)} characters in {FILE.stat().st_size} bytes"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
