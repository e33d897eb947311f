"""Runs a stack with the real Pulumi engine and simulated providers: no cloud account and no prompts."""

from holdfast.simulator.pulumi.display import Audience
from holdfast.simulator.pulumi.events import CommandOutcome, EngineFailure, EngineKilled, PolicyVerdict
from holdfast.simulator.pulumi.session import Rehearsal
from holdfast.simulator.pulumi.settings import Subject

__all__ = [
    "Audience",
    "CommandOutcome",
    "EngineFailure",
    "EngineKilled",
    "PolicyVerdict",
    "Rehearsal",
    "Subject",
]
