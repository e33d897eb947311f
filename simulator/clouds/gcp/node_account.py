"""The service account of nodes."""

from typing import Final

from holdfast.scheduling.json import mapping
from holdfast.simulator.clouds.catalogue import ResourceRequest
from holdfast.simulator.clouds.gcp.names import project

_ACCOUNT: Final = "gcp:serviceaccount/account:Account"


def no_account(request: ResourceRequest) -> str | None:
    """Refuse a service account of this project that does not exist."""
    account = str(mapping(request.inputs.get("nodeConfig")).get("serviceAccount") or "")
    if not account.endswith(f"@{project(request)}.iam.gserviceaccount.com"):
        return None
    if any(one.outputs.get("email") == account for one in request.inventory.of_type(_ACCOUNT)):
        return None
    return f'googleapi: Error 400: Service account "{account}" does not exist., badRequest'
