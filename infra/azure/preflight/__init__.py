"""What only a subscription knows: who asks, and where the stack is going to be. Asked before anything is made."""

from holdfast.infra.azure.preflight.checks import Subscription, kubelogin_problem
from holdfast.infra.azure.preflight.queries import reach_problem
from holdfast.infra.azure.preflight.survey import survey
from holdfast.infra.naming import aks_cluster_name

__all__ = ["Subscription", "cluster_name_of", "kubelogin_problem", "reach_problem", "survey"]
