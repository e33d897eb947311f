"""Messages contain the state of an object."""

from holdfast.simulator.kubernetes_client.errors import KubeTimeout
from holdfast.simulator.kubernetes_client.objects import identity, summarize


def test_messages_name_the_object_its_finalizers_and_its_conditions() -> None:
    obj = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "deletionTimestamp": "now", "finalizers": ["a/b", "c"]},
    }
    assert "finalizers [a/b, c]" in summarize(obj), "finalizers block the deletion"
    condition = {"type": "Ready", "status": "False", "reason": "Why", "message": "because"}
    summary = summarize({"kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [condition]}})
    assert summary == "Node n: Ready=False (because)", "the message explains the condition"
    named = identity({"kind": "Pod", "metadata": {"name": "p", "namespace": "n"}})
    assert named == "Pod n/p", "pods in two namespaces can have the same name"
    message = str(KubeTimeout("Pod n/p is gone", 5, []))
    assert message == "Pod n/p is gone: not satisfied after 5 s; last observed: it does not exist", (
        "all three parts"
    )
    pods = [{"kind": "Pod", "metadata": {"name": str(number)}} for number in range(10)]
    assert str(KubeTimeout("ten run", 5, pods)).endswith(
        "Pod 6: no status | Pod 7: no status | and 2 more"
    ), "the object that is late need not be the first"
