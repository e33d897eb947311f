"""Makes the users of an output depend on further resources."""

from pulumi import CustomResource, Output

from pulumi_holdfast.kubernetes.kubernetes_object import tied_to
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import text


def recorded(*, preview: bool) -> Recording:
    def build() -> None:
        route = CustomResource("test:index:Route", "route", {})
        subnet = tied_to(Output.from_input("subnet-1"), [route])
        CustomResource("test:index:Node", "node", {"subnet": subnet})

    return record(build, preview=preview)


def test_the_user_of_a_tied_value_depends_on_the_resource() -> None:
    assert "route" in recorded(preview=False).one(":Node").depends_on


def test_a_new_resource_keeps_the_value_known_on_preview() -> None:
    assert text(recorded(preview=True).one(":Node"), "subnet") == "subnet-1"
