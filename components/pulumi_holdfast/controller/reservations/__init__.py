"""Reservations: capacity on a better tier for a running job, held by placeholder pods and a taint."""
