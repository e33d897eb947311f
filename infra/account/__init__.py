"""What only the account knows: who calls, which zones it has, what it may buy. Asked before anything is made."""

from infra.account.aws_cli import cli_problem
from infra.account.facts import Account
from infra.account.findings import zones_of_network
from infra.account.survey import survey

__all__ = ["Account", "cli_problem", "survey", "zones_of_network"]
