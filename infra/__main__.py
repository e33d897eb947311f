"""What `pulumi up` runs."""

from holdfast.infra.program import run

run(needs_way_in=True)
