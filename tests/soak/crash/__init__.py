"""Kills the engine after one resource and proves that the next runs make up for it."""

from tests.soak.crash.choosing import every, pivotal, sample
from tests.soak.crash.in_turn import prove_in_turn
from tests.soak.crash.proving import Baseline, Proof, prove, run_undisturbed
from tests.soak.crash.stage import Stage

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
