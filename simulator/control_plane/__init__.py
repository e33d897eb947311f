"""A real Kubernetes control plane on this machine, with simulated nodes."""

from holdfast.simulator.control_plane.control_plane import ControlPlane
from holdfast.simulator.control_plane.layout import Layout

__all__ = ["ControlPlane", "Layout"]
