"""The account that nodes have."""

from typing import Final

from rehearsal.kube.summary import mapping
from rehearsal.providers.cloud.catalogue import Making
from rehearsal.providers.cloud.gcp.names import project

_ACCOUNT: Final = "gcp:serviceaccount/account:Account"


def no_account(making: Making) -> str | None:
    """Return why nodes cannot have the account that is asked for; one of another project is the user's own."""
    account = str(mapping(making.inputs.get("nodeConfig")).get("serviceAccount") or "")
    if not account.endswith(f"@{project(making)}.iam.gserviceaccount.com"):
        return None
    if any(one.outputs.get("email") == account for one in making.inventory.of_type(_ACCOUNT)):
        return None
    return f'googleapi: Error 400: Service account "{account}" does not exist., badRequest'
