"""Runs the pods of the operators as real processes on this machine, like a kubelet."""

from pulumi_holdfast.rehearsal.operator_runner.operator_runner import OperatorRunner

__all__ = ["OperatorRunner"]
