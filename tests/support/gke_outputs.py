"""What Google Cloud adds to a resource beyond its name, for the mocks to answer with."""

from __future__ import annotations

DNS_ENDPOINT = "gke-0123456789abcdef0123456789abcdef0123-123456789012.europe-west4.gke.goog"
ADDRESS = "203.0.113.9"
AUTHORITY = "Q0E="


def computed_outputs(kind: str, inputs: dict[str, object]) -> dict[str, object]:
    """The outputs that a created resource of a type has and its inputs do not."""
    if kind == "gcp:container/cluster:Cluster":
        return {
            "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": DNS_ENDPOINT}},
            "endpoint": ADDRESS,
            "masterAuth": {"clusterCaCertificate": AUTHORITY},
        }
    if kind == "gcp:serviceaccount/account:Account":
        return {"email": f"{inputs['accountId']}@{inputs['project']}.iam.gserviceaccount.com"}
    return {}
