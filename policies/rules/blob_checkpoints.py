"""What makes a storage account of Azure a safe place for checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.known_values import UNKNOWN, at, is_list, is_object, items_at
from holdfast.policies.rules.attached import attached_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value

_PACKAGE: Final = "azure-native:storage"


def is_storage_account(type_token: str) -> bool:
    """Whether the type is a storage account, of any API version."""
    return type_token.startswith(_PACKAGE) and type_token.endswith(":StorageAccount")


def blob_problems(account: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield what is wrong with an account, told from its own properties and from what is attached to it."""
    if at(account.props, "allowBlobPublicAccess") not in (False, UNKNOWN):
        yield "can be made public. Set `allowBlobPublicAccess: false`."
    if at(account.props, "allowSharedKeyAccess") not in (False, UNKNOWN):
        yield "takes shared keys, which reach every namespace's checkpoints. Set `allowSharedKeyAccess: false`."
    if at(account.props, "minimumTlsVersion") not in ("TLS1_2", "TLS1_3", UNKNOWN):
        yield "takes TLS older than 1.2. Set `minimumTlsVersion: TLS1_2`."
    services = _of(account, resources, "BlobServiceProperties")
    if not any(at(each.props, "isVersioningEnabled") in (True, UNKNOWN) for each in services):
        yield (
            "keeps no versions: a checkpoint that is overwritten in the moment of an eviction is lost. Give it "
            "BlobServiceProperties with `isVersioningEnabled: true`."
        )
    for policy in _of(account, resources, "ManagementPolicy"):
        rules = items_at(policy.props, "policy", "rules")
        if is_list(rules) and any(ends_current(rule) for rule in rules):
            yield (
                "deletes current checkpoints by their age: a job that has paused for so long starts from nothing. Give "
                "the rule `actions.version.delete` instead of `actions.baseBlob.delete`."
            )


def _of(account: StackResource, resources: Sequence[StackResource], kind: str) -> tuple[StackResource, ...]:
    kinds = [
        each.type for each in resources if each.type.startswith(_PACKAGE) and each.type.endswith(f":{kind}")
    ]
    return attached_to(account, resources, kinds, "accountName", "accountName", "name")


def ends_current(rule: Value) -> bool:
    """Whether a rule that is in force deletes blobs that are no old version."""
    return (
        is_object(at(rule, "definition", "actions", "baseBlob", "delete"))
        and at(rule, "enabled") is not False
    )
