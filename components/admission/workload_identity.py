"""The admission rule by which trainers get the identity that reaches their checkpoints, on AKS."""

from __future__ import annotations

from typing import Final

from holdfast.components.admission.rules import LabelRule

#: What AKS's webhook heeds a pod by: it gives no other the token, and tells no other whose identity it has.
USES_IDENTITY: Final = "azure.workload.identity/use"


def workload_identity_rule(service_account: str) -> LabelRule:
    """Return the rule under which the pods of a service account need not be labelled by whoever writes them.

    The webhook looks at pods after the policies of the cluster, and so sees the label. A pod that has it as anything but
    `"true"` says no, and gets none.
    """
    return LabelRule(name="identity", service_account=service_account, label=USES_IDENTITY, value="true")
