"""Runs a stack through the real Pulumi engine: no account, no prompt, every cloud played by a stand-in."""

from holdfast.simulator.pulumi.display import Audience
from holdfast.simulator.pulumi.events import EngineFailure, EngineKilled, Outcome, Verdict
from holdfast.simulator.pulumi.session import Rehearsal
from holdfast.simulator.pulumi.settings import Subject

__all__ = ["Audience", "EngineFailure", "EngineKilled", "Outcome", "Rehearsal", "Subject", "Verdict"]
