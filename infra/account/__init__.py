"""What only the account knows: who calls, which zones it has, what it may buy. Asked before anything is made."""

from infra.account.facts import Account
from infra.account.findings import zones_of_network
from infra.account.survey import survey

__all__ = ["Account", "survey", "zones_of_network"]
