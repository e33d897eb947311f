"""The account that nodes have."""

from typing import Final

from holdfast.simulator.clouds.catalogue import Making
from holdfast.simulator.clouds.gcp.names import project
from holdfast.simulator.kubernetes_client.objects import mapping

_ACCOUNT: Final = "gcp:serviceaccount/account:Account"


def no_account(making: Making) -> str | None:
    """Return why nodes cannot have the account that is asked for; one of another project is the user's own."""
    account = str(mapping(making.inputs.get("nodeConfig")).get("serviceAccount") or "")
    if not account.endswith(f"@{project(making)}.iam.gserviceaccount.com"):
        return None
    if any(one.outputs.get("email") == account for one in making.inventory.of_type(_ACCOUNT)):
        return None
    return f'googleapi: Error 400: Service account "{account}" does not exist., badRequest'
