"""Messages about waits say what state an object is in."""

from holdfast.simulator.kubernetes_client.errors import KubeTimeout
from holdfast.simulator.kubernetes_client.objects import identity, summarize


def test_a_stuck_deletion_names_its_finalizers() -> None:
    obj = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "deletionTimestamp": "now", "finalizers": ["a/b", "c"]},
    }
    assert "finalizers [a/b, c]" in summarize(obj), "the reader cannot see what holds the object"


def test_conditions_are_told_with_their_message() -> None:
    condition = {"type": "Ready", "status": "False", "reason": "Why", "message": "because"}
    told = summarize({"kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [condition]}})
    assert told == "Node n: Ready=False (because)", "the message is what helps"


def test_an_object_of_a_namespace_is_named_with_it() -> None:
    named = identity({"kind": "Pod", "metadata": {"name": "p", "namespace": "n"}})
    assert named == "Pod n/p", "two pods of one name cannot be told apart"


def test_a_timeout_names_the_condition_its_seconds_and_the_last_state() -> None:
    told = str(KubeTimeout("Pod n/p is gone", 5, None))
    assert told == "Pod n/p is gone: not satisfied after 5 s; last observed: it does not exist", (
        "a part is missing"
    )
