"""Kills the engine after one resource and proves that the next runs make up for it."""

from rehearsal.crash.choosing import every, pivotal, sample
from rehearsal.crash.in_turn import prove_in_turn
from rehearsal.crash.proving import Baseline, Proof, prove, run_undisturbed
from rehearsal.crash.stage import Stage

__all__ = [
    "Baseline",
    "Proof",
    "Stage",
    "every",
    "pivotal",
    "prove",
    "prove_in_turn",
    "run_undisturbed",
    "sample",
]
