"""Kills the engine after one resource and proves that the next runs make up for it."""

from tests.soak.crash.command import every, pivotal, sample
from tests.soak.crash.proving import Baseline, Proof, Stage, prove, prove_in_turn, run_undisturbed

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
