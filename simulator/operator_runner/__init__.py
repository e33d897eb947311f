"""Runs operators' pods for real: the kubelet of those pods."""

from holdfast.simulator.operator_runner.operator_host import OperatorHost

__all__ = ["OperatorHost"]
