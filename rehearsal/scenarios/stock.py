"""What Karpenter's simulated cloud has in stock of a pool's machines."""

from typing import Final

from holdfast.simulator.kubernetes_client.client import KubeClient

#: On a pool's node class: how many machines more are sold.
STOCK: Final = "rehearsal.holdfast.dev/stock"
_VERSION: Final = "karpenter.kwok.sh/v1alpha1"


def sell_out(client: KubeClient, pool: str) -> None:
    """Have no machine of a pool sold any more: Karpenter is told that there is no capacity."""
    client.merge_patch(_VERSION, "KWOKNodeClass", pool, {"metadata": {"annotations": {STOCK: "0"}}})


def restock(client: KubeClient, pool: str) -> None:
    """Have as many machines of a pool sold as anybody wants."""
    client.merge_patch(_VERSION, "KWOKNodeClass", pool, {"metadata": {"annotations": {STOCK: None}}})
