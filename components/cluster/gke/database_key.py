"""The customer key that the cluster's database is encrypted with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_gcp.kms import CryptoKeyIAMMember

_ROLE: Final = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


@dataclass(frozen=True, kw_only=True)
class DatabaseKey:
    """A key of the user's own, and the number of the project that the cluster is in.

    `key` is `projects/<project>/locations/<region>/keyRings/<ring>/cryptoKeys/<key>`, in the cluster's region.
    """

    key: str
    project_number: str


class DatabaseKeyAccess(ComponentResource):
    """Lets GKE encrypt and decrypt with a key.

    Creates the grant to GKE's service agent of the project, which must be there before the cluster. It stays when the
    stack goes: another cluster of the project has it by the same grant, and is lost without it.
    """

    key: str

    def __init__(self, name: str, args: DatabaseKey, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:DatabaseKeyAccess", name, None, opts)
        CryptoKeyIAMMember(
            f"{name}-grant",
            crypto_key_id=args.key,
            role=_ROLE,
            member=f"serviceAccount:service-{args.project_number}@container-engine-robot.iam.gserviceaccount.com",
            opts=ResourceOptions(parent=self, retain_on_delete=True),
        )
        self.key = args.key
        self.register_outputs({})
