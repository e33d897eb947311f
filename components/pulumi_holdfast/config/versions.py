"""Every version that the platform installs. docs/extending.md lists what else a new version changes."""

from typing import Final

# renovate: datasource=github-releases depName=kubernetes/kubernetes
KUBERNETES: Final = "1.36"

# renovate: datasource=github-releases depName=kubernetes-sigs/jobset
JOBSET: Final = "0.12.0"

# renovate: datasource=github-releases depName=ray-project/kuberay
KUBERAY: Final = "1.6.2"

#: The operators of jobs, by the names of their charts.
JOB_OPERATORS: Final = {"jobset": JOBSET, "kuberay-operator": KUBERAY}

# The image that the fallback controller's program runs in, with the digest of the index of all platforms.
# renovate: datasource=docker depName=docker.io/library/python
PYTHON_IMAGE: Final = (
    "3.13.14-slim-trixie@sha256:6771159cd4fa5d9bba1258caf0b82e6b73458c694d178ad97c5e925c2d0e1a91"
)

# The image of placeholder pods.
# renovate: datasource=docker depName=registry.k8s.io/pause
PAUSE: Final = "3.10.1"

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
