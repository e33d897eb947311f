"""The GCP stack, composed."""

from infra.gcp.composition import compose

__all__ = ["compose"]
