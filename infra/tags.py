"""What marks everything that this program made."""

from collections.abc import Mapping
from typing import Final

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
STACK: Final = "holdfast.dev/stack"


def labels(stack: str) -> Mapping[str, str]:
    """The labels of every Kubernetes object of a stack."""
    return {MANAGED_BY: "holdfast", STACK: stack}
