"""What the parts of a stack are called in a subscription. Pure."""

import re
from hashlib import sha256
from typing import Final

from holdfast.infra import naming

#: Of the names that a cluster's begins, the API server's is the shortest that Azure takes.
_LONGEST: Final = 54
_CLUSTER: Final = "holdfast-"
_DIGEST: Final = 8


def cluster_name_of(stack: str) -> str:
    """The name of a stack's cluster, and of its resource group, which `az aks list` shows; no two stacks share it.

    A name that cannot stay as it is keeps what can, and a digest of the whole.
    """
    longest = _LONGEST - len(_CLUSTER)
    kept = re.sub(r"-+", "-", naming.as_dns_label(stack))
    if kept == stack and len(stack) <= longest:
        return f"{_CLUSTER}{stack}"
    digest = sha256(stack.encode()).hexdigest()[:_DIGEST]
    return f"{_CLUSTER}{kept[: longest - _DIGEST - 1].strip('-') or 'stack'}-{digest}"
