"""Runs a stack through the real Pulumi engine: no account, no prompt, every cloud played by a stand-in."""

from rehearsal.engine.display import Audience
from rehearsal.engine.failures import EngineFailure, EngineKilled
from rehearsal.engine.results import Outcome, Verdict
from rehearsal.engine.session import Rehearsal
from rehearsal.engine.subject import Subject

__all__ = ["Audience", "EngineFailure", "EngineKilled", "Outcome", "Rehearsal", "Subject", "Verdict"]
