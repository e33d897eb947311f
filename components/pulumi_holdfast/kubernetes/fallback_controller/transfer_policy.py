"""The admission policies that keep a job and its copies from running in two clusters at once, for every client.

One is about jobs at home, the other about copies of jobs of other clusters, and about what the controllers of those clusters may
do here. Both compare objects as `pulumi_holdfast.controller.other_clusters.protocol` has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from pulumi import ComponentResource, Output, ResourceOptions

from pulumi_holdfast.kubernetes.admission.expressions import CREATES, text, texts
from pulumi_holdfast.kubernetes.fallback_controller.write_policy import binding_spec, rest, same, without
from pulumi_holdfast.kubernetes.kubernetes_object import admission_policy, refusals, resource_rule
from pulumi_holdfast.ladder.labels import COPY_OF, PERMIT, PERMITS, TRANSFER
from pulumi_holdfast.ladder.operators import CONTROLLER_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulumi import Input

    from pulumi_holdfast.kubernetes.fallback_controller.access import Users
    from pulumi_holdfast.ladder.json import Json

#: The names of the policies and of their bindings.
HOME_POLICY: Final = "fallback-transfers"
COPIES_POLICY: Final = "fallback-copies"

_WAITING, _GRANTED, _RECALLED = PERMITS

_UPDATES: Final = 'request.operation == "UPDATE"'
_DELETES: Final = 'request.operation == "DELETE"'

# What the API server sets in each update.
_SERVER_FIELDS: Final = ("annotations", "generation", "managedFields", "resourceVersion")


def home_policy_spec() -> Json:
    """Return the policy for jobs at home: while a copy may run, the job stays suspended and keeps its finalizer."""
    held = f"finalizers.orValue([]).exists(f, f == {text(TRANSFER)})"
    is_held, was_held = f"object.metadata.?{held}", f"oldObject.metadata.?{held}"
    return _policy(
        ["UPDATE"],
        condition=("held", f"{is_held} || {was_held}"),
        validations=(
            (
                f"!({is_held}) || object.spec.?suspend.orValue(false)",
                "a copy of the job may run in another cluster, so the job stays suspended here",
            ),
            (
                f"{is_held} || request.userInfo.username == {text(CONTROLLER_ACCOUNT)}",
                f"only the fallback controller removes the finalizer {TRANSFER}, once no copy can run",
            ),
        ),
    )


def copies_policy_spec(accounts: Sequence[str]) -> Json:
    """Return the policy for copies; `accounts` are the user names of the controllers of other clusters."""
    new, old = _permit("object"), _permit("oldObject")
    return _policy(
        ["CREATE", "UPDATE", "DELETE"],
        condition=(
            "copies",
            f"{_is_account(accounts)} || {_origin('object')} != '' || {_origin('oldObject')} != ''",
        ),
        validations=(
            (
                f"!({_is_account(accounts)}) || ({_DELETES} ? {_origin('oldObject')} : {_origin('object')}) != ''",
                "the controller of another cluster writes only copies of its jobs",
            ),
            (
                f"!({_is_account(accounts)} && {_UPDATES}) || ({_only_permit_and_suspension()})",
                "the controller of another cluster changes a copy only by its permit and its suspension",
            ),
            (
                f"!({CREATES}) || ({new} == {text(_WAITING)} && object.spec.?suspend.orValue(false))",
                f"a copy is created suspended, with the permit {_WAITING}",
            ),
            (
                f"!({_UPDATES}) || {_origin('object')} == {_origin('oldObject')}",
                f"the annotation {COPY_OF} of a copy cannot be changed, and is not added to a job",
            ),
            (
                f"!({_UPDATES}) || {new} == {old} || ({_is_account(accounts)} && {_follows(new, old)})",
                f"only home's controller changes the permit, from {_WAITING} over {_GRANTED} to {_RECALLED}",
            ),
            (
                f"!({_UPDATES}) || {new} == {text(_GRANTED)} || object.spec.?suspend.orValue(false)",
                f"a copy runs only with the permit {_GRANTED} of its home",
            ),
            (
                f"!({_DELETES}) || ({old} == {text(_RECALLED)} && oldObject.spec.?suspend.orValue(false))",
                "a copy is deleted by its home, after it is recalled: delete the job in its home cluster",
            ),
        ),
    )


def account_from(cluster: str) -> str:
    """Return the user name here of the controller of another cluster, by the name that this cluster has for that one."""
    return f"{account_prefix(cluster)}{CONTROLLER_ACCOUNT}"


def account_prefix(cluster: str) -> str:
    """Return the prefix of user names from another cluster, which distinguishes them from accounts of this one."""
    return f"{cluster}:"


def _policy(
    operations: Sequence[str], *, condition: tuple[str, str], validations: Iterable[tuple[str, str]]
) -> Json:
    rules = [
        resource_rule(group, resource, on=operations)
        for group, resource in (("jobset.x-k8s.io", "jobsets"), ("ray.io", "rayjobs"))
    ]
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": [{"name": condition[0], "expression": condition[1]}],
        "validations": refusals(*validations),
    }


def _is_account(accounts: Sequence[str]) -> str:
    return f"request.userInfo.username in {texts(accounts)}"


def _annotation(obj: str, key: str) -> str:
    """Return an annotation's text; empty for none, and for an object that the request does not have."""
    return f'({obj} == null ? "" : {obj}.metadata.?annotations[?{text(key)}].orValue(""))'


def _origin(obj: str) -> str:
    return _annotation(obj, COPY_OF)


def _permit(obj: str) -> str:
    return _annotation(obj, PERMIT)


def _follows(new: str, old: str) -> str:
    order = texts(PERMITS)
    return f"({new} in {order} && {old} in {order} && {order}.indexOf({new}) > {order}.indexOf({old}))"


def _only_permit_and_suspension() -> str:
    parts = (
        without("", "metadata", "spec", "status"),
        without(".metadata", *_SERVER_FIELDS),
        rest("OBJECT.metadata.?annotations.orValue({})", [PERMIT]),
        without(".spec", "suspend"),
    )
    return same(*parts, new="dyn(object)", old="dyn(oldObject)")


def _copies_policy(accounts: Users) -> Output[Json]:
    return Output.all(*accounts).apply(lambda known: copies_policy_spec(cast("list[str]", known)))


class TransferPolicy(ComponentResource):
    """Keeps a job from running in two clusters at once (`holdfast:index:TransferPolicy`).

    Creates a ValidatingAdmissionPolicy with its binding if jobs of this cluster may move to others (`leaves`), and one for copies of
    jobs of other clusters, whose controllers write here with the user names `accounts`, if there are any.
    """

    def __init__(
        self, name: str, opts: ResourceOptions | None = None, *, leaves: bool = False, accounts: Users = ()
    ) -> None:
        super().__init__("holdfast:index:TransferPolicy", name, None, opts)
        specs: dict[str, Input[Json]] = {
            **({HOME_POLICY: home_policy_spec()} if leaves else {}),
            **({COPIES_POLICY: _copies_policy(accounts)} if accounts else {}),
        }
        for each, spec in specs.items():
            admission_policy(
                f"{name}-{each}", "ValidatingAdmissionPolicy", {"name": each}, spec, binding_spec(each), self
            )
        self.register_outputs({})
