"""The IAM roles of Karpenter on EKS: its nodes' role, its controller's, and the service-linked role of spot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import pulumi
from pulumi import (
    ComponentResource,
    ErrorHook,
    ErrorHookArgs,
    Input,
    Output,
    ResourceHookBinding,
    ResourceOptions,
)
from pulumi_aws.eks import PodIdentityAssociation
from pulumi_aws.iam import InstanceProfile, Role, RolePolicy, RolePolicyAttachment, ServiceLinkedRole

from pulumi_holdfast.aws.karpenter.controller_policies import (
    CONTROLLER_POLICIES,
    ControllerScope,
    controller_policy,
)
from pulumi_holdfast.aws.policy_documents import (
    NODE_POLICIES,
    Place,
    Workload,
    pod_identity_trust,
    service_trust,
)


@dataclass(frozen=True, kw_only=True)
class KarpenterNodeRoleArgs:
    """Where the role is; `instance_profile` also creates the profile that passes it to instances.

    Karpenter creates instance profiles itself, except in an isolated VPC, where IAM is unreachable.
    """

    place: Place
    instance_profile: bool


class KarpenterNodeRole(ComponentResource):
    """The role of Karpenter's nodes, separate from the system nodes' (`holdfast:index:KarpenterNodeRole`).

    Creates the role with three AWS managed policies and, with `instance_profile`, an instance profile. The
    stack creates its access entry.
    """

    role_name: Output[str]
    role_arn: Output[str]
    instance_profile: Output[str] | None

    def __init__(self, name: str, args: KarpenterNodeRoleArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:KarpenterNodeRole", name, None, opts)
        role = Role(
            f"{name}-role",
            assume_role_policy=service_trust(args.place.ec2_service()),
            description="Nodes that Karpenter starts",
            opts=ResourceOptions(parent=self),
        )
        for policy in NODE_POLICIES:
            RolePolicyAttachment(
                f"{name}-{policy}",
                role=role.name,
                policy_arn=args.place.aws_policy(policy),
                opts=ResourceOptions(parent=self),
            )
        self.role_name = role.name
        self.role_arn = role.arn
        self.instance_profile = None
        if args.instance_profile:
            profile = InstanceProfile(f"{name}-profile", role=role.name, opts=ResourceOptions(parent=self))
            self.instance_profile = profile.name
        self.register_outputs({"role_name": self.role_name})


@dataclass(frozen=True, kw_only=True)
class ControllerIdentityArgs:
    """The pods that get the role, and what it is limited to: the nodes' role, with its path, and the queue, by name."""

    place: Place
    workload: Workload
    node_role: Input[str]
    queue: Input[str]
    isolated: bool
    role_path: str


class ControllerIdentity(ComponentResource):
    """The role of Karpenter's controller (`holdfast:index:ControllerIdentity`).

    Creates the role, its six inline policies, which cannot be attached to anything else, and the association
    with the controller's pods.
    """

    def __init__(self, name: str, args: ControllerIdentityArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ControllerIdentity", name, None, opts)
        role = Role(
            f"{name}-role",
            assume_role_policy=pod_identity_trust(args.workload),
            description="Karpenter's controller",
            opts=ResourceOptions(parent=self),
        )
        scope = Output.all(args.node_role, args.queue).apply(lambda names: _scope(args, *names))
        policies = [
            RolePolicy(
                f"{name}-{policy}",
                role=role.name,
                policy=scope.apply(lambda known, policy=policy: controller_policy(policy, known)),
                opts=ResourceOptions(parent=self),
            )
            for policy in CONTROLLER_POLICIES
        ]
        PodIdentityAssociation(
            f"{name}-association",
            cluster_name=args.workload.cluster_name,
            namespace=args.workload.namespace,
            service_account=args.workload.service_account,
            role_arn=role.arn,
            # A controller that starts without its permissions exits and restarts slowly.
            opts=ResourceOptions(parent=self, depends_on=policies),
        )
        self.register_outputs({})


def _scope(args: ControllerIdentityArgs, node_role: str, queue: str) -> ControllerScope:
    return ControllerScope(
        place=args.place,
        cluster_name=args.workload.cluster_name,
        node_role=node_role,
        queue=queue,
        isolated=args.isolated,
        role_path=args.role_path,
    )


#: The service that the role is linked to; it is part of the role's path.
SERVICE: Final = "spot.amazonaws.com"
PATH: Final = f"/aws-service-role/{SERVICE}/"

#: Never changed: the role may have a description and tags from other users, and an import is followed by an
#: update if these differ, which a caller with read-only permissions cannot do. `tagsAll` contains the
#: provider's default tags, which would differ as well.
_LEFT_ALONE: Final = ("description", "tags", "tagsAll", "customSuffix")

_TAKEN: Final = "has been taken in this account"
_RUN_AGAIN: Final = (
    "AWSServiceRoleForEC2Spot did not exist when this run looked it up, and was created by another user since. "
    "Run `pulumi up` again: it finds the role and imports it."
)


#: The roles of a program by account; the program is the stack at the root of its resources.
_MADE: Final = WeakKeyDictionary[pulumi.Resource, dict[str, ServiceLinkedRole]]()


def spot_service_linked_role(
    name: str, *, account: str, existing_arn: str | None, opts: ResourceOptions | None = None
) -> ServiceLinkedRole:
    """Create or import the account's service-linked role for EC2 Spot, `AWSServiceRoleForEC2Spot`; it is never deleted.

    `existing_arn` is its ARN, None if it does not exist. The clusters of a program in one account share the first one's: AWS refuses
    a second. Without it EC2 rejects spot instances with `AuthFailure.ServiceLinkedRoleCreationNotPermitted`, so spot pools depend
    on it. Other stacks of the account use it too, so it is never changed and stays when the stack is destroyed.
    """
    stack = pulumi.runtime.get_root_resource()
    made = {} if stack is None else _MADE.setdefault(stack, {})
    if account not in made:
        made[account] = ServiceLinkedRole(
            name,
            aws_service_name=SERVICE,
            opts=ResourceOptions.merge(
                opts,
                ResourceOptions(
                    # Once the role is in the state, the import of the same ARN has no effect, so it can always be
                    # set.
                    import_=existing_arn,
                    ignore_changes=[*_LEFT_ALONE],
                    retain_on_delete=True,
                    hooks=ResourceHookBinding(on_error=[ErrorHook(f"{name}-taken", _explain)]),
                ),
            ),
        )
    return made[account]


def _explain(failure: ErrorHookArgs) -> bool:
    """Explain a creation that failed because the role was created by another run in the meantime.

    AWS's message asks for a suffix, which this role cannot have. There is no retry: the planned create would
    fail each time.
    """
    if any(_TAKEN in error for error in failure.errors):
        pulumi.log.error(_RUN_AGAIN)
    return False
