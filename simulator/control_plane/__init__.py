"""A real Kubernetes control plane on this machine, with simulated nodes."""

from holdfast.simulator.control_plane.configuration import Layout
from holdfast.simulator.control_plane.control_plane import ControlPlane

__all__ = ["ControlPlane", "Layout"]
