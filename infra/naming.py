"""Names: what a resource is called in the program, and what it is called where it lives.

The logical name is a key in the state: it is composed of the concept and the user's own name, and never changes. The
physical name is what `kubectl` shows: it is the user's own name wherever the place lets it be, so that the name in
the configuration, in a job's selector and in an event are one and the same.
"""

import re
from hashlib import sha256
from typing import Final

# Kubernetes holds Namespace names and label values to this; a pool's name is both a NodePool's name and a label value.
DNS_LABEL_LIMIT: Final = 63

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)


def is_dns_label(name: str) -> bool:
    """Whether a name can be a Namespace, a NodePool and a label value alike."""
    return len(name) <= DNS_LABEL_LIMIT and _DNS_LABEL.fullmatch(name) is not None


def as_dns_label(name: str) -> str:
    """The nearest allowed name (`A100_Spot` → `a100-spot`); empty where nothing of the name can stay."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:DNS_LABEL_LIMIT].strip("-")


def as_label_value(text: str) -> str:
    """A text of letters, digits, `.`, `_` and `-` (a stack's name) cut to what Kubernetes takes as a label value."""
    return text[:DNS_LABEL_LIMIT].strip("._-")


def as_google_label_value(text: str) -> str:
    """A text cut to what Google Cloud takes as a label's value: lower case, without dots."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower())[:DNS_LABEL_LIMIT].strip("-")


def cluster(stack: str) -> str:
    """The name of a stack's cluster, which `aws eks list-clusters` shows and its machines are tagged with.

    A stack's name may have dots, a cluster's on EKS none.
    """
    return f"holdfast-{as_label_value(stack).replace('.', '-')}"


def pool(name: str) -> str:
    """Logical name of a pool."""
    return f"pool-{name}"


def compute_class(name: str) -> str:
    """Logical name of a ComputeClass."""
    return f"class-{name}"


def placement(pool: str) -> str:
    """Logical name of where a pool's machines stand to each other."""
    return f"placement-of-{pool}"


def training_namespace(name: str) -> str:
    """Logical name of a training namespace."""
    return f"namespace-{name}"


def checkpoint_claim(namespace: str) -> str:
    """Logical name of a training namespace's claim on its checkpoints."""
    return f"checkpoints-of-{namespace}"


def checkpoint_access(namespace: str) -> str:
    """Logical name of a training namespace's way to its checkpoints."""
    return f"checkpoint-access-of-{namespace}"


#: Of the names that a cluster's begins, the API server's is the shortest that Azure takes.
_LONGEST: Final = 54
_CLUSTER: Final = "holdfast-"
_DIGEST: Final = 8


def aks_cluster_name(stack: str) -> str:
    """The name of a stack's cluster, and of its resource group, which `az aks list` shows; no two stacks share it.

    A name that cannot stay as it is keeps what can, and a digest of the whole.
    """
    longest = _LONGEST - len(_CLUSTER)
    kept = re.sub(r"-+", "-", as_dns_label(stack))
    if kept == stack and len(stack) <= longest:
        return f"{_CLUSTER}{stack}"
    digest = sha256(stack.encode()).hexdigest()[:_DIGEST]
    return f"{_CLUSTER}{kept[: longest - _DIGEST - 1].strip('-') or 'stack'}-{digest}"


#: Short enough for whatever it becomes a part of.
_ENVIRONMENT_LONGEST: Final = 40
#: The most characters that GKE takes as a cluster's name.
_LONGEST_CLUSTER: Final = 40


def gke_environment(stack: str, longest: int = _ENVIRONMENT_LONGEST) -> str:
    """The name of a stack as a part of the names of its identities, with at most `longest` characters (14 or more).

    GKE knows a pod by its project, namespace and service account, and not by its cluster: two stacks in one project that
    gave their jobs the same names would give them each other's checkpoints. Nobody writes this one, and no two stacks
    share it: a name that cannot stay as it is keeps what can, and a digest of the whole.
    """
    kept = re.sub(r"-+", "-", as_dns_label(stack))
    if kept == stack and len(stack) <= longest:
        return stack
    digest = sha256(stack.encode()).hexdigest()[:_DIGEST]
    return f"{kept[: longest - _DIGEST - 1].strip('-') or 'stack'}-{digest}"


def gke_cluster_name(stack: str) -> str:
    """The name of a stack's cluster, which `gcloud container clusters list` shows; no two stacks share it."""
    return f"{_CLUSTER}{gke_environment(stack, _LONGEST_CLUSTER - len(_CLUSTER))}"
