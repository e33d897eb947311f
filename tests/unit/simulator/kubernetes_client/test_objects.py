"""Messages contain the state of an object."""

from holdfast.simulator.kubernetes_client.errors import KubeTimeout
from holdfast.simulator.kubernetes_client.objects import identity, summarize


def test_summary_of_a_blocked_deletion_has_its_finalizers() -> None:
    obj = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "deletionTimestamp": "now", "finalizers": ["a/b", "c"]},
    }
    assert "finalizers [a/b, c]" in summarize(obj), "finalizers block the deletion"


def test_summary_has_conditions_with_their_message() -> None:
    condition = {"type": "Ready", "status": "False", "reason": "Why", "message": "because"}
    summary = summarize({"kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [condition]}})
    assert summary == "Node n: Ready=False (because)", "the message explains the condition"


def test_namespaced_object_is_named_with_its_namespace() -> None:
    named = identity({"kind": "Pod", "metadata": {"name": "p", "namespace": "n"}})
    assert named == "Pod n/p", "pods in two namespaces can have the same name"


def test_timeout_names_condition_seconds_and_last_state() -> None:
    message = str(KubeTimeout("Pod n/p is gone", 5, None))
    assert message == "Pod n/p is gone: not satisfied after 5 s; last observed: it does not exist", (
        "all three parts"
    )
