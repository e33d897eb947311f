"""Every version the platform is built of, each in this one place."""

from typing import Final

# renovate: datasource=github-releases depName=kubernetes/kubernetes
KUBERNETES: Final = "1.36"

# renovate: datasource=github-releases depName=kubernetes-sigs/jobset
JOBSET: Final = "0.12.0"

# renovate: datasource=github-releases depName=ray-project/kuberay
KUBERAY: Final = "1.6.2"

# renovate: datasource=github-releases depName=kubernetes-sigs/karpenter
KARPENTER: Final = "1.14.1"

# The chart of Karpenter's simulated provider lies in Karpenter's repository and has kept this number of its own.
KARPENTER_KWOK_CHART: Final = "0.35.0"
