"""Runs operators' pods for real: the kubelet of those pods."""

from rehearsal.hosting.operator_host import OperatorHost

__all__ = ["OperatorHost"]
