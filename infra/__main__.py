"""The program that `pulumi up` runs."""

from holdfast.infra.program import run

run(check_access=True)
