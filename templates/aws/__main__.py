"""The training clusters of this project: one for each file in stacks/."""

from pulumi_holdfast.stack_program import main

main()
