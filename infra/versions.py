"""Every version the platform is built of, each in this one place."""

from typing import Final

# renovate: datasource=github-releases depName=kubernetes/kubernetes
KUBERNETES: Final = "1.36"

# renovate: datasource=github-releases depName=kubernetes-sigs/jobset
JOBSET: Final = "0.12.0"

# renovate: datasource=github-releases depName=ray-project/kuberay
KUBERAY: Final = "1.6.2"

# Of this repository's own image: as `version` in pyproject.toml.
FALLBACK_CONTROLLER: Final = "0.1.0"

# What pods run that only hold a place.
PAUSE: Final = "3.10.1"

# renovate: datasource=github-releases depName=kubernetes-sigs/karpenter
KARPENTER: Final = "1.14.1"

# The chart of Karpenter's simulated provider lies in Karpenter's repository and has kept this number of its own.
KARPENTER_KWOK_CHART: Final = "0.35.0"

# Of public.ecr.aws/karpenter/controller at KARPENTER. It wins over the tag: change both together.
KARPENTER_IMAGE_DIGEST: Final = "sha256:723130949e4cab989461ff07d1be4cd781d63515432494641b33c235f300ae23"

# renovate: datasource=github-releases depName=NVIDIA/k8s-device-plugin
NVIDIA_DEVICE_PLUGIN: Final = "0.19.0"

# The chart's; it names the plugin's image itself.
EFA_DEVICE_PLUGIN: Final = "v0.5.31"

# The release of EKS's Amazon Linux 2023 images that all nodes start from, and the kubelet it holds for KUBERNETES.
# A newer one is a drift: a pool's machines follow with `rollOut: true`, the system nodes at once, one by one.
NODE_IMAGE_RELEASE: Final = "20260903"
NODE_IMAGE_KUBELET: Final = "1.36.3"
