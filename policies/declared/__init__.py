"""Pools as programs declare them, whichever cloud they are on, in the one form that rules are written for."""

from holdfast.policies.declared.pool import DeclaredPool
from holdfast.policies.declared.reading import declared_pools

__all__ = ["DeclaredPool", "declared_pools"]
