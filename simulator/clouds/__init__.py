"""Simulated cloud providers: they store resources in a file and behave like the cloud's API."""

from holdfast.simulator.clouds.provider import CloudProvider

__all__ = ["CloudProvider"]
