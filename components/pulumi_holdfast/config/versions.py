"""Every version that the platform installs. docs/extending.md lists what else a new version changes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.ladder.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulumi_holdfast.ladder.taints import Taint

# renovate: datasource=github-releases depName=kubernetes/kubernetes
KUBERNETES: Final = "1.36"

# renovate: datasource=github-releases depName=kubernetes-sigs/jobset
JOBSET: Final = "0.12.0"

# The digest of registry.k8s.io/jobset/jobset at JOBSET: change both together.
JOBSET_IMAGE_DIGEST: Final = "sha256:e75536f1135b7bb2f19f8c3b620782fbdd9091d73398e3a272f9a5fed322980d"

# renovate: datasource=github-releases depName=ray-project/kuberay
KUBERAY: Final = "1.6.2"

#: The operators of jobs, by the names of their charts.
JOB_OPERATORS: Final = {"jobset": JOBSET, "kuberay-operator": KUBERAY}

# The image that the fallback controller's program runs in, with the digest of the index of all platforms.
# renovate: datasource=docker depName=docker.io/library/python
PYTHON_IMAGE: Final = (
    "3.13.14-slim-trixie@sha256:6771159cd4fa5d9bba1258caf0b82e6b73458c694d178ad97c5e925c2d0e1a91"
)

# The image of placeholder pods, with its digest.
# renovate: datasource=docker depName=registry.k8s.io/pause
PAUSE: Final = "3.10.1@sha256:278fb9dbcca9518083ad1e11276933a2e96f23de604a3a08cc3c80002767d24c"

# The exporters of what jobs use: tags of the images, the second with the digest of the index of all platforms.
# renovate: datasource=docker depName=nvcr.io/nvidia/k8s/dcgm-exporter versioning=loose
DCGM_EXPORTER: Final = "4.5.3-4.8.2-distroless"
# renovate: datasource=docker depName=registry.k8s.io/kube-state-metrics/kube-state-metrics
KUBE_STATE_METRICS: Final = "v2.20.0@sha256:42cfe3723a5f058171c627537fb57a3ea0f26e4380fa18555a95cb1a1b4cfc5b"

# renovate: datasource=github-releases depName=kubernetes-sigs/karpenter
KARPENTER: Final = "1.14.1"

# The chart of Karpenter's simulated provider, in Karpenter's repository, has its own version.
KARPENTER_KWOK_CHART: Final = "0.35.0"

# The digest of public.ecr.aws/karpenter/controller at KARPENTER. It overrides the tag: change both together, from the published
# chart and never from a git tree. tools/references.json says where each digest was read.
KARPENTER_IMAGE_DIGEST: Final = "sha256:445baefaaa689029cc12ac1f659b916b0b82fb14308ce536f8521fcf079116fa"

# renovate: datasource=github-releases depName=NVIDIA/k8s-device-plugin
NVIDIA_DEVICE_PLUGIN: Final = "0.19.0"

# The version of the chart, which names the plugin's image.
# renovate: datasource=helm depName=aws-efa-k8s-device-plugin registryUrl=https://aws.github.io/eks-charts
EFA_DEVICE_PLUGIN: Final = "v0.5.31"

# The release of EKS's Amazon Linux 2023 images that all nodes use, and its kubelet for KUBERNETES.
# A newer release is drift: Karpenter replaces a pool's nodes with `rollOut: true`; system nodes are replaced one by one.
# renovate: datasource=github-releases depName=awslabs/amazon-eks-ami versioning=loose
NODE_IMAGE_RELEASE: Final = "20260903"
NODE_IMAGE_KUBELET: Final = "1.36.3"

#: The first Kubernetes version that serves MutatingAdmissionPolicy as admissionregistration.k8s.io/v1.
OLDEST_VERSION = (1, 36)

ALLOWED_VERSIONS = (
    "1.36 or later, which serves MutatingAdmissionPolicy v1 for the tolerations of training pods"
)


def version_problem(field: str, version: str, taints: Iterable[Taint]) -> Problem | None:
    """Return why a cluster cannot run the admission policies, or None if it can.

    `field` is the full path of the configuration field that holds the version (`1.36` or `1.36.3`). `taints`
    are the taints that pods must tolerate explicitly on an older cluster.
    """
    match = re.fullmatch(r"v?(\d+)\.(\d+)(?:[.+-].*)?", version, re.ASCII)
    if match is None:
        return Problem(
            field=field, value=f'"{version}"', allowed=ALLOWED_VERSIONS, fix='Set a version such as "1.36".'
        )
    if (int(match[1]), int(match[2])) >= OLDEST_VERSION:
        return None
    return Problem(
        field=field,
        value=f'"{version}"',
        allowed=ALLOWED_VERSIONS,
        fix='Set it to "1.36". To stay on the older version, remove the training namespaces and add the tolerations '
        f"to each job's pod template: {explicit_tolerations(taints)}.",
    )


def explicit_tolerations(taints: Iterable[Taint]) -> str:
    """Return tolerations in the form in which a user writes them into a pod template."""
    return ", ".join(
        f'{{key: {taint.key}, operator: Equal, value: "{taint.value}", effect: {taint.effect}}}'
        for taint in taints
    )
