"""The training clusters of this project: one for each file in stacks/."""

from holdfast.infra.program import main

main()
