"""What lets jobs fall back: the kind of their ladders, admission that makes them able to move or refuses them, who moves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.components.admission.job_admission import JobAdmission, JobAdmissionArgs, capacity_selections
from holdfast.components.admission.job_validation import JobValidation, JobValidationArgs
from holdfast.components.fallback_controller.component import (
    FallbackController,
    FallbackControllerArgs,
    controller_images,
)
from holdfast.components.fallback_policy.definition import FallbackPolicyDefinition
from holdfast.infra import versions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pulumi

    from holdfast.components.admission.rules import AdmissionRule, NodeSelection
    from holdfast.infra.config.ladder import ControllerSection


@dataclass(frozen=True, kw_only=True)
class FallbackPlan:
    """What the composition of a cloud chooses: the rules of its pods, the registry of images, how many controllers.

    `selections` are ways to ask for spot that no rule of the pods knows of; `claims` are volume claims that are tied to no
    zone.
    """

    rules: Sequence[AdmissionRule]
    images: str | None
    replicas: int
    selections: tuple[NodeSelection, ...] = ()
    claims: tuple[str, ...] = ()


def make_fallback(
    asked: ControllerSection,
    plan: FallbackPlan,
    *,
    after: Callable[..., pulumi.ResourceOptions],
    pools: Sequence[pulumi.Resource],
) -> Sequence[pulumi.Resource]:
    """Make all of it and return what training namespaces come after.

    `after` gives the options of what comes after these resources. The controller comes after the pools and so goes before
    them: it must not see their nodes go and move jobs because of it.
    """
    definition = FallbackPolicyDefinition("fallback-policy", opts=after())
    capacity = (*capacity_selections(plan.rules), *plan.selections)
    admission = JobAdmission("job-admission", JobAdmissionArgs(capacity=capacity), opts=after(definition))
    # After what makes jobs able to move: judged as they were written, all would be found unable to.
    validation = JobValidation(
        "job-validation",
        JobValidationArgs(rules=tuple(plan.rules), capacity=capacity, claims=plan.claims),
        opts=after(definition, admission),
    )
    images = controller_images(versions.FALLBACK_CONTROLLER, versions.PAUSE, plan.images, own=asked.image)
    controller = FallbackController(
        "fallback-controller",
        FallbackControllerArgs(images=images, replicas=plan.replicas),
        opts=after(definition, *pools),
    )
    return [definition, admission, validation, controller]
