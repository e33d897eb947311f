"""Runs a stack with the real Pulumi engine and simulated providers: no cloud account and no prompts."""

from pulumi_holdfast.rehearsal.engine.display import Audience
from pulumi_holdfast.rehearsal.engine.events import CommandOutcome, EngineFailure, EngineKilled, PolicyVerdict
from pulumi_holdfast.rehearsal.engine.session import Rehearsal
from pulumi_holdfast.rehearsal.engine.settings import Subject

__all__ = [
    "Audience",
    "CommandOutcome",
    "EngineFailure",
    "EngineKilled",
    "PolicyVerdict",
    "Rehearsal",
    "Subject",
]
