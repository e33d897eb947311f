"""What `pulumi up` runs."""

from infra.program import run

run(needs_way_in=True)
