"""Runs the training pods that ask for it as real processes on this machine, like a kubelet."""

from pulumi_holdfast.rehearsal.operator_runner.training.pods import TrainingPods

__all__ = ["TrainingPods"]
