"""Simulated clouds, and the real engine, control plane and operators that run against them on one machine."""
