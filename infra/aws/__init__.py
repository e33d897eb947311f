"""The AWS stack, composed."""

from infra.aws.composition import compose

__all__ = ["compose"]
