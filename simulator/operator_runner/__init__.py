"""Runs operators' pods for real: the kubelet of those pods."""

from holdfast.simulator.operator_runner.operator_runner import OperatorRunner

__all__ = ["OperatorRunner"]
