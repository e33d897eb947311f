"""Creates a simulated GKE cluster and its node pools, call by call."""

from dataclasses import dataclass

from pulumi_holdfast.rehearsal.engine.values import Value
from tests.support.clusters.provider_calls import Engine, Provider

CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "gcp:container/nodePool:NodePool"
PROJECT = "holdfast-test"
LOCATION = "europe-west4"
NAME = "train"
PATH = f"projects/{PROJECT}/locations/{LOCATION}/clusters/{NAME}"
GPUS = [{"type": "nvidia-tesla-a100", "count": 8}]


@dataclass(frozen=True, kw_only=True)
class GkeConsole:
    """Makes the parts of one cluster, `train`, in a project."""

    gcp: Provider

    def cluster(self, **overrides: Value) -> str:
        """Make a cluster without nodes; return its id."""
        inputs: dict[str, Value] = {
            "name": NAME,
            "project": PROJECT,
            "location": LOCATION,
            "nodeLocations": [f"{LOCATION}-a", f"{LOCATION}-b"],
            "initialNodeCount": 1,
            "removeDefaultNodePool": True,
            "deletionProtection": False,
            **overrides,
        }
        return Engine(provider=self.gcp, type=CLUSTER).create(inputs)[0]

    def pool(self, name: str = "system", **config: Value) -> str:
        """Make a node pool with this node configuration; return its id."""
        return self.engine(name).create(self.inputs(name, **config))[0]

    def outputs(self, name: str = "system", **config: Value) -> dict[str, Value]:
        """Make a node pool; return what the cloud shows of it."""
        return self.engine(name).create(self.inputs(name, **config))[1]

    def inputs(self, name: str = "system", **config: Value) -> dict[str, Value]:
        """The inputs of a node pool of the cluster."""
        return {
            "name": name,
            "project": PROJECT,
            "location": LOCATION,
            "cluster": NAME,
            "nodeConfig": {"machineType": "n2-standard-8", **config},
        }

    def engine(self, name: str) -> Engine:
        """The engine's side of a node pool."""
        return Engine(provider=self.gcp, type=NODE_POOL, name=name)
