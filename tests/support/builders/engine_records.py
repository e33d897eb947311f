"""Builders of the engine's state, locks, events and results."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pulumi.automation.events import EngineEvent

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.engine import CommandOutcome, PolicyVerdict
from pulumi_holdfast.rehearsal.engine.checkpoint import Checkpoint

_PROVIDER = "urn:pulumi:dev::holdfast::pulumi:providers:aws::default::00000000"


def urn(name: str, type_token: str = "aws:ec2/vpc:Vpc") -> str:
    return f"urn:pulumi:dev::holdfast::{type_token}::{name}"


def a_resource(name: str, **overrides: Any) -> dict[str, Any]:
    type_token = str(overrides.pop("type", "aws:ec2/vpc:Vpc"))
    return {
        "urn": urn(name, type_token),
        "type": type_token,
        "custom": True,
        "id": f"{name}-id",
        "inputs": {"cidrBlock": "10.0.0.0/16"},
        "provider": _PROVIDER,
        **overrides,
    }


def a_pending_create(name: str, **overrides: Any) -> dict[str, Any]:
    resource = a_resource(name, **overrides)
    del resource["id"]
    return {"resource": resource, "type": "creating"}


def a_checkpoint(resources: Sequence[Json] = (), pending: Sequence[Json] = (), **latest: Any) -> Checkpoint:
    return Checkpoint(latest={"resources": list(resources), "pending_operations": list(pending), **latest})


def write_checkpoint(file: Path, checkpoint: Checkpoint) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    document = {"version": checkpoint.version, "checkpoint": {"latest": checkpoint.latest}}
    file.write_text(json.dumps(document), encoding="utf-8")


def write_lock(folder: Path, *, pid: int, hostname: str, written: float, name: str = "lock") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    timestamp = datetime.fromtimestamp(written, tz=UTC).isoformat()
    content = {"pid": pid, "hostname": hostname, "timestamp": timestamp, "username": "user"}
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def event(**kind: Any) -> EngineEvent:
    # Its parameter is an untyped dict.
    return EngineEvent.from_json({"sequence": 1, "timestamp": 1, **kind})  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK


def an_error(message: str, *, of: str = "", severity: str = "error") -> EngineEvent:
    return event(diagnosticEvent={"message": message, "color": "never", "severity": severity, "urn": of})


def a_violation(**overrides: str) -> EngineEvent:
    return event(
        policyEvent={
            "message": "the ladder ends on spot",
            "policyName": "training-ladder-ends-on-demand",
            "policyPackName": "holdfast",
            "enforcementLevel": "mandatory",
            "resourceUrn": urn("ladder"),
            **overrides,
        }
    )


def stack_outputs_event(outputs: Json) -> EngineEvent:
    stack = {
        "type": "pulumi:pulumi:Stack",
        "urn": urn("holdfast-dev", "pulumi:pulumi:Stack"),
        "outputs": outputs,
    }
    metadata = {"op": "create", "urn": stack["urn"], "type": stack["type"], "new": stack}
    return event(resOutputsEvent={"metadata": metadata})


def an_outcome(**overrides: Any) -> CommandOutcome:
    fields: dict[str, Any] = {
        "command": "up",
        "stack": "local",
        "changes": {"create": 3},
        "packs": {"holdfast": "0.1.0"},
        "verdicts": (),
        "outputs": {},
        "problems": (),
        "seconds": 12.0,
        "stdout": "",
    }
    return CommandOutcome(**{**fields, **overrides})


def a_verdict(**overrides: str) -> PolicyVerdict:
    fields = {
        "policy": "training-ladder-ends-on-demand",
        "level": "mandatory",
        "urn": urn("ladder"),
        "message": "the ladder ends on spot",
    }
    return PolicyVerdict(**{**fields, **overrides})
