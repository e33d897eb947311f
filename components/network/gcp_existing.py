"""A network on Google Cloud that is there already: the user's own."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ExistingGcpNetwork:
    """A network and a subnetwork in the cluster's region, by id or link, and the names of two of its secondary ranges.

    `projects/<project>/global/networks/<name>`, `projects/<project>/regions/<region>/subnetworks/<name>`: of another
    project for a shared VPC. Nothing in it is made or changed: whoever owns it sees to private Google access, without
    which nodes pull no image and reach no bucket, and to NAT.
    """

    network: str
    subnetwork: str
    pods_range: str
    services_range: str

    @property
    def network_id(self) -> str:
        """The network."""
        return self.network

    @property
    def subnetwork_id(self) -> str:
        """The subnetwork."""
        return self.subnetwork
