"""Runs the real deployment on one machine: the engine, stand-in providers, a control plane."""
