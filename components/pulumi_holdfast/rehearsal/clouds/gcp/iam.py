"""Google Cloud IAM: service accounts and IAM members."""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from pulumi_holdfast.rehearsal.clouds.catalogue import Refuse, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.gcp.federation import CUSTOM_ROLE, has_pool
from pulumi_holdfast.rehearsal.clouds.gcp.names import project
from pulumi_holdfast.rehearsal.clouds.relations import find, text

_ACCOUNT: Final = "gcp:serviceaccount/account:Account"
_CLUSTER: Final = "gcp:container/cluster:Cluster"


# Members of Workload Identity, as a principal and as a linked account.
_POD: Final = re.compile(
    r"principal(?:Set)?://iam\.googleapis\.com/projects/[^/]+/locations/global/workloadIdentityPools/"
    r"(?P<direct>[^/]+\.svc\.id\.goog)/.*"
    r"|serviceAccount:(?P<linked>[^/@]+\.svc\.id\.goog)\[.*\]"
)
# Members of a pool that a stack has made.
_FEDERATED: Final = re.compile(
    r"principal(?:Set)?://iam\.googleapis\.com/projects/[^/]+/locations/global/workloadIdentityPools/"
    r"(?P<pool>(?![^/]+\.svc\.id\.goog/)[^/]+)/.*"
)
_CUSTOM_ROLE: Final = re.compile(r"projects/(?P<project>[^/]+)/roles/.+")
_MADE_ACCOUNT: Final = re.compile(
    r"serviceAccount:(?P<email>[^@]+@(?P<project>[^@]+)\.iam\.gserviceaccount\.com)"
)


#: Returns the id of the resource that a grant is on.
Parent: TypeAlias = Callable[[ResourceRequest], str]


def grant(parent: Parent, *, of: str, where: frozenset[str], needs: tuple[Refuse, ...] = ()) -> Rules:
    """Return the rules of an IAM member type: one member, one role, one resource.

    `of` names the resource in messages, `where` are the inputs that identify it, `needs` are further refusals. Equal
    grants of two stacks are one object: the first delete removes it for both.
    """

    def identify(request: ResourceRequest) -> str:
        return f"{parent(request)}/{request.inputs.get('role')}/{request.inputs.get('member')}"

    def wrapped(refuse: Refuse) -> Refuse:
        def with_place(request: ResourceRequest) -> str | None:
            reason = refuse(request)
            if reason is None:
                return None
            place = f'{of} "{parent(request)}"'
            return f"Error applying IAM policy for {place}: Error setting IAM policy for {place}: {reason}"

        return with_place

    return Rules(
        name_property="",
        identify=identify,
        immutable=where | {"role", "member", "condition"},
        overwrites=True,
        computed={"etag": lambda request: f"Bw{request.digest[:10]}="},
        refuse_create=(*needs, *(wrapped(refuse) for refuse in (_no_identity_pool, _no_account, _no_role))),
    )


def _member(request: ResourceRequest) -> str:
    return str(request.inputs.get("member"))


def _no_identity_pool(request: ResourceRequest) -> str | None:
    """The first cluster with Workload Identity creates the project's identity pool; all other pools are resources."""
    federated = _FEDERATED.fullmatch(_member(request))
    if federated is not None and not has_pool(request, federated["pool"]):
        return _missing_pool(federated["pool"])
    pod = _POD.fullmatch(_member(request))
    if pod is None:
        return None
    pool = pod["direct"] or pod["linked"]
    clusters = request.inventory.of_type(_CLUSTER)
    if any(text(one.inputs, "workloadIdentityConfig.workloadPool") == pool for one in clusters):
        return None
    return _missing_pool(pool)


def _missing_pool(pool: str) -> str:
    return (
        f"googleapi: Error 400: Identity Pool does not exist ({pool}). Please check that you specified a valid "
        "resource name as returned in the `name` attribute in the configuration API., badRequest"
    )


def _no_account(request: ResourceRequest) -> str | None:
    """Only this project's accounts are checked; those of other projects and Google's count as existing."""
    account = _MADE_ACCOUNT.fullmatch(_member(request))
    if account is None or account["project"] != project(request):
        return None
    if find(request.inventory, _ACCOUNT, account["email"], by="email") is not None:
        return None
    return f"googleapi: Error 400: Service account {account['email']} does not exist., badRequest"


def _no_role(request: ResourceRequest) -> str | None:
    """A custom role of this project must exist before it is granted."""
    role = str(request.inputs.get("role"))
    custom = _CUSTOM_ROLE.fullmatch(role)
    if custom is None or custom["project"] != project(request):
        return None
    if request.inventory.find(CUSTOM_ROLE, role) is not None:
        return None
    return f"googleapi: Error 400: Role {role} does not exist in the resource's hierarchy., badRequest"


def _email(request: ResourceRequest) -> str:
    return f"{request.inputs.get('accountId')}@{project(request)}.iam.gserviceaccount.com"


def _account_name(request: ResourceRequest) -> str:
    return f"projects/{project(request)}/serviceAccounts/{_email(request)}"


RESOURCES: Mapping[str, Rules] = {
    _ACCOUNT: Rules(
        name_property="accountId",
        unique_within=("project",),
        identify=_account_name,
        immutable=frozenset({"project"}),
        computed={
            "email": _email,
            "member": lambda request: f"serviceAccount:{_email(request)}",
            "name": _account_name,
            "uniqueId": lambda request: str(int(request.digest[:17], 16)),
        },
        taken=(
            "Error creating service account: googleapi: Error 409: Service account {name} already exists within "
            "project., alreadyExists"
        ),
    ),
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": grant(
        lambda request: str(request.inputs.get("cryptoKeyId")),
        of="KMS CryptoKey",
        where=frozenset({"cryptoKeyId"}),
    ),
    "gcp:projects/iAMMember:IAMMember": grant(
        lambda request: str(request.inputs.get("project")), of="project", where=frozenset({"project"})
    ),
    "gcp:serviceaccount/iAMMember:IAMMember": grant(
        lambda request: str(request.inputs.get("serviceAccountId")),
        of="service account",
        where=frozenset({"serviceAccountId"}),
    ),
}
