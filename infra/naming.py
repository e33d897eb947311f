"""Derives logical names (in the Pulumi state) and physical names (in the cloud and the cluster).

A logical name is a key in the state: it consists of the concept and the user's name, and never changes. A physical name
is what `kubectl` shows: it is the user's name wherever that is allowed, so that the name in the configuration, in a
job's node selector and in an event are the same.
"""

import re
from hashlib import sha256
from typing import Final

# The limit of Kubernetes for names of namespaces and for label values. A pool's name is a NodePool name and a label value.
DNS_LABEL_LIMIT: Final = 63

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)


def is_dns_label(name: str) -> bool:
    """Whether a name is valid for a Namespace, a NodePool and a label value."""
    return len(name) <= DNS_LABEL_LIMIT and _DNS_LABEL.fullmatch(name) is not None


def as_dns_label(name: str) -> str:
    """The nearest valid name (`A100_Spot` → `a100-spot`); empty if the name has no valid character."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:DNS_LABEL_LIMIT].strip("-")


def as_label_value(text: str) -> str:
    """A text of letters, digits, `.`, `_` and `-` (a stack's name) shortened to a valid Kubernetes label value."""
    return text[:DNS_LABEL_LIMIT].strip("._-")


def as_google_label_value(text: str) -> str:
    """A text shortened to a valid Google Cloud label value: lower case, without dots."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower())[:DNS_LABEL_LIMIT].strip("-")


def cluster(stack: str) -> str:
    """The name of a stack's EKS cluster, which `aws eks list-clusters` shows and which tags its instances.

    A stack's name may contain dots; the name of an EKS cluster may not.
    """
    return f"holdfast-{as_label_value(stack).replace('.', '-')}"


def pool(name: str) -> str:
    """Logical name of a pool."""
    return f"pool-{name}"


def compute_class(name: str) -> str:
    """Logical name of a ComputeClass."""
    return f"class-{name}"


def placement(pool: str) -> str:
    """Logical name of a pool's placement group."""
    return f"placement-of-{pool}"


def training_namespace(name: str) -> str:
    """Logical name of a training namespace."""
    return f"namespace-{name}"


def checkpoint_claim(namespace: str) -> str:
    """Logical name of a training namespace's volume claim for checkpoints."""
    return f"checkpoints-of-{namespace}"


def checkpoint_access(namespace: str) -> str:
    """Logical name of a training namespace's access to its checkpoints."""
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
