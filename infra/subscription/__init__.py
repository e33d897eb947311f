"""What only a subscription knows: who asks, and where the stack is going to be. Asked before anything is made."""

from infra.subscription.facts import Subscription
from infra.subscription.kubelogin import kubelogin_problem
from infra.subscription.names import cluster_name_of
from infra.subscription.reach import reach_problem
from infra.subscription.survey import survey

__all__ = ["Subscription", "cluster_name_of", "kubelogin_problem", "reach_problem", "survey"]
