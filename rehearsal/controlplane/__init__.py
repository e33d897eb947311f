"""A real Kubernetes control plane on this machine, with simulated nodes."""

from rehearsal.controlplane.control_plane import ControlPlane
from rehearsal.controlplane.layout import Layout

__all__ = ["ControlPlane", "Layout"]
