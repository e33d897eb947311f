"""Measures a preview of the local stack, alone and with the policy pack."""
