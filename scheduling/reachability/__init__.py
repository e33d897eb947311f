"""Whether the jobs of a training namespace can reach on-demand capacity, shape by shape and tier by tier.

Pure, and the one definition: the policy pack applies it to a program, and what the API server can see of it becomes a
ValidatingAdmissionPolicy.
"""
