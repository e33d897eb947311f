"""The project of the simulator, and the names of its service accounts and agents."""

from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, ResourceRequest
from pulumi_holdfast.rehearsal.clouds.relations import needs

# The default project, and the number of all projects.
PROJECT: Final = "rehearsal"
PROJECT_NUMBER: Final = "123456789012"


def project_of(inputs: Json, configuration: Json) -> str:
    """Return the project of inputs: their own, or the provider's."""
    for values in (inputs, configuration):
        given = values.get("project")
        if isinstance(given, str) and given:
            return given
    return PROJECT


def project(request: ResourceRequest) -> str:
    """Return the project of an object."""
    return project_of(request.inputs, request.configuration)


def asked_project(call: Call) -> str:
    """Return the project of a function call."""
    return project_of(call.arguments, call.configuration)


def storage_agent() -> str:
    """Return Cloud Storage's service agent, which uses encryption keys."""
    return f"service-{PROJECT_NUMBER}@gs-project-accounts.iam.gserviceaccount.com"


_KEY_GRANT: Final = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
_KEY_ROLE: Final = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


def may_encrypt(request: ResourceRequest, key: JsonValue, agent: str) -> bool:
    """Whether a service agent may use an encryption key."""
    wanted: Json = {"cryptoKeyId": key, "role": _KEY_ROLE, "member": f"serviceAccount:{agent}"}
    return any(wanted.items() <= one.inputs.items() for one in request.inventory.of_type(_KEY_GRANT))


def _is_ours(request: ResourceRequest, account: str) -> bool:
    return account.endswith(f"@{project(request)}.iam.gserviceaccount.com")


#: Refuses a service account of this project that does not exist.
no_account: Final = needs(
    "nodeConfig.serviceAccount",
    "gcp:serviceaccount/account:Account",
    'googleapi: Error 400: Service account "{value}" does not exist., badRequest',
    by="email",
    only=_is_ours,
)
