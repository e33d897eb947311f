"""Simulated clouds, and the engine, control plane and operators that run a stack against them on one machine."""
