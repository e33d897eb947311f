"""Kills the engine after one resource and proves that the next runs make up for it."""

from rehearsal.crash.choosing import every, sample
from rehearsal.crash.proving import Baseline, Proof, Stage, prove, run_undisturbed

__all__ = ["Baseline", "Proof", "Stage", "every", "prove", "run_undisturbed", "sample"]
