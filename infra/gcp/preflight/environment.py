"""What tells the identities of one stack's jobs from those of another in the same project. Pure."""

import re
from hashlib import sha256
from typing import Final

from holdfast.infra import naming

#: Short enough for whatever it becomes a part of.
_LONGEST: Final = 40
#: The most characters that GKE takes as a cluster's name.
_LONGEST_CLUSTER: Final = 40
_CLUSTER: Final = "holdfast-"
_DIGEST: Final = 8


def environment_of(stack: str, longest: int = _LONGEST) -> str:
    """The name of a stack as a part of the names of its identities, with at most `longest` characters (14 or more).

    GKE knows a pod by its project, namespace and service account, and not by its cluster: two stacks in one project that
    gave their jobs the same names would give them each other's checkpoints. Nobody writes this one, and no two stacks
    share it: a name that cannot stay as it is keeps what can, and a digest of the whole.
    """
    kept = re.sub(r"-+", "-", naming.as_dns_label(stack))
    if kept == stack and len(stack) <= longest:
        return stack
    digest = sha256(stack.encode()).hexdigest()[:_DIGEST]
    return f"{kept[: longest - _DIGEST - 1].strip('-') or 'stack'}-{digest}"


def cluster_name_of(stack: str) -> str:
    """The name of a stack's cluster, which `gcloud container clusters list` shows; no two stacks share it."""
    return f"{_CLUSTER}{environment_of(stack, _LONGEST_CLUSTER - len(_CLUSTER))}"
