"""The Azure stack, composed."""

from infra.azure.composition import compose

__all__ = ["compose"]
