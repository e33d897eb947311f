"""Whether the jobs of a training namespace can reach on-demand capacity, shape by shape and tier by tier.

This is the only definition: the policy pack applies it to a program, and a ValidatingAdmissionPolicy applies the part that
the API server can evaluate.
"""
