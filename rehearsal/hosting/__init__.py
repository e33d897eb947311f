"""Runs operators' pods for real: the kubelet of those pods that ask for it."""

from rehearsal.hosting.operator_host import OperatorHost

__all__ = ["OperatorHost"]
