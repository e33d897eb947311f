"""Derives logical names (in the Pulumi state) and physical names (in the cloud and the cluster).

A logical name is a key in the state: it consists of the name of the TrainingCluster, the concept and the user's name, and never
changes. A URN has the type of its parents and not their names, so two clusters of one program differ by the first part. A physical name
is what `kubectl` shows: it is the user's name wherever that is allowed, so that the name in the configuration, in a
job's node selector and in an event are the same.
"""

import re
from hashlib import sha256
from typing import Final

# The limit of Kubernetes for names of namespaces and for label values. A pool's name is a NodePool name and a label value.
DNS_LABEL_LIMIT: Final = 63


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


def part(cluster: str, concept: str) -> str:
    """Logical name of a part that a TrainingCluster has once."""
    return f"{cluster}-{concept}"


def pool(cluster: str, name: str) -> str:
    """Logical name of a pool of a TrainingCluster."""
    return part(cluster, f"pool-{name}")


def compute_class(cluster: str, name: str) -> str:
    """Logical name of a ComputeClass."""
    return part(cluster, f"class-{name}")


def placement(cluster: str, pool: str) -> str:
    """Logical name of a pool's placement group."""
    return part(cluster, f"placement-of-{pool}")


def training_namespace(cluster: str, name: str) -> str:
    """Logical name of a training namespace."""
    return part(cluster, f"namespace-{name}")


def checkpoint_claim(cluster: str, namespace: str) -> str:
    """Logical name of a training namespace's volume claim for checkpoints."""
    return part(cluster, f"checkpoints-of-{namespace}")


def volume(cluster: str, name: str) -> str:
    """Logical name of a volume of the stack's storage."""
    return part(cluster, f"volume-{name}")


def namespace_volume(cluster: str, namespace: str, volume: str) -> str:
    """Logical name of a volume in a training namespace."""
    return part(cluster, f"volume-{volume}-of-{namespace}")


def volume_claim(cluster: str, namespace: str, volume: str) -> str:
    """Logical name of a training namespace's claim for a volume."""
    return part(cluster, f"claim-{volume}-of-{namespace}")


def dataset_access(cluster: str, namespace: str, volume: str) -> str:
    """Logical name of a training namespace's access to the bucket behind a volume."""
    return part(cluster, f"access-to-{volume}-of-{namespace}")


def checkpoint_access(cluster: str, namespace: str) -> str:
    """Logical name of a training namespace's access to its checkpoints."""
    return part(cluster, f"checkpoint-access-of-{namespace}")


def trusted_issuer(cluster: str, other: str) -> str:
    """Logical name of the trust in the tokens of another cluster."""
    return part(cluster, f"issuer-of-{other}")


def other_stack(cluster: str, other: str) -> str:
    """Logical name of the reference to the stack of another cluster of ladders."""
    return part(cluster, f"stack-of-{other}")


def home_account(stack: str, cluster: str) -> str:
    """The name, in the cloud, of the identity that the controller of another cluster has in a stack: at most 27 characters.

    Unique for each stack and cluster. A slash is in neither name.
    """
    digest = sha256(f"{stack}/{cluster}".encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"from-{cluster[:_MAX_HOME].strip('-')}-{digest}"


def home_checkpoints(cluster: str, other: str) -> str:
    """Logical name of the reference to the stack in which jobs of another cluster keep their checkpoints."""
    return part(cluster, f"home-of-{other}")


def home_endpoint(cluster: str, stack: str) -> str:
    """The name, in the state and in Azure, of the private endpoint of another stack's storage account.

    By the stack: Azure has no second endpoint of one name, which would replace this one where several clusters keep their
    checkpoints in the account, or one cluster keeps them in another.
    """
    return _unique_label(part(cluster, f"checkpoints-of-{stack}"), _MAX_AZURE_NAME)


def namespace_roles(cluster: str, namespace: str) -> str:
    """Logical name of the roles of users in a training namespace."""
    return part(cluster, f"roles-in-{namespace}")


_CLUSTER_PREFIX: Final = "holdfast-"
_DIGEST_LENGTH: Final = 8

#: Azure's limit for the DNS name of the API server, the shortest of the names that start with the cluster's.
_MAX_AKS_CLUSTER: Final = 54
#: GKE's limit for the name of a cluster.
_MAX_GKE_CLUSTER: Final = 40
#: Azure's limit for the name of a private endpoint.
_MAX_AZURE_NAME: Final = 64
#: Of the name of another cluster, in the names of identities.
_MAX_HOME: Final = 13
#: Short enough for every name that contains it.
_MAX_ENVIRONMENT: Final = 40


def aks_cluster_name(stack: str) -> str:
    """The name of a stack's AKS cluster and of its resource group, unique for each stack; `az aks list` shows it."""
    return f"{_CLUSTER_PREFIX}{_unique_label(stack, _MAX_AKS_CLUSTER - len(_CLUSTER_PREFIX))}"


def aks_node_group(cluster_name: str) -> str:
    """The resource group that AKS creates for the machines of a cluster."""
    return f"{cluster_name}-nodes"


def gke_cluster_name(stack: str) -> str:
    """The name of a stack's GKE cluster, unique for each stack; `gcloud container clusters list` shows it."""
    return f"{_CLUSTER_PREFIX}{_unique_label(stack, _MAX_GKE_CLUSTER - len(_CLUSTER_PREFIX))}"


def gke_environment(stack: str, longest: int = _MAX_ENVIRONMENT) -> str:
    """The name of a stack as a part of the names of its identities, with at most `longest` characters (14 or more).

    GKE identifies a pod by its project, namespace and service account, without its cluster. If two stacks of a project
    used the same names, the jobs of each could read the checkpoints of the other.
    """
    return _unique_label(stack, longest)


def _unique_label(stack: str, longest: int) -> str:
    """A stack's name as a DNS label; a name that has to change gets a digest, so that no two stacks share a label."""
    label = re.sub(r"-+", "-", as_dns_label(stack))
    if label == stack and len(stack) <= longest:
        return stack
    digest = sha256(stack.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{label[: longest - _DIGEST_LENGTH - 1].strip('-') or 'stack'}-{digest}"
