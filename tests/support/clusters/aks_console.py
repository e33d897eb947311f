"""Creates a simulated AKS cluster and its node pools, call by call."""

from dataclasses import dataclass

from pulumi_holdfast.rehearsal.clouds.azure.names import SUBSCRIPTION
from pulumi_holdfast.rehearsal.engine.values import Properties, Value
from tests.support.clusters.provider_calls import Engine, Provider

GROUP_TYPE = "azure-native:resources:ResourceGroup"
CLUSTER = "azure-native:containerservice:ManagedCluster"
AGENT_POOL = "azure-native:containerservice:AgentPool"
GROUP = "holdfast-test"
NAME = "train"
PATH = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.ContainerService/"
    f"managedClusters/{NAME}"
)


@dataclass(frozen=True, kw_only=True)
class AksConsole:
    """Makes the parts of one cluster, `train`, in a subscription."""

    azure: Provider

    def cluster(self, **overrides: Value) -> str:
        """Make a cluster with its system pool; return its id."""
        group: Properties = {"resourceGroupName": GROUP, "location": "westeurope"}
        Engine(provider=self.azure, type=GROUP_TYPE).create(group)
        system: Value = {"name": "system", "mode": "System", "count": 2, "vmSize": "Standard_D4ds_v5"}
        inputs: Properties = {
            "resourceName": NAME,
            "resourceGroupName": GROUP,
            "location": "westeurope",
            "dnsPrefix": NAME,
            "kubernetesVersion": "1.36",
            "identity": {"type": "SystemAssigned"},
            "agentPoolProfiles": [system],
            **overrides,
        }
        return Engine(provider=self.azure, type=CLUSTER).create(inputs)[0]

    def pool(self, name: str = "cpu", **overrides: Value) -> str:
        """Make a node pool; return its id."""
        return self.engine(name).create(self.inputs(name, **overrides))[0]

    def outputs(self, name: str = "cpu", **overrides: Value) -> dict[str, Value]:
        """Make a node pool; return what the cloud shows of it."""
        return self.engine(name).create(self.inputs(name, **overrides))[1]

    def inputs(self, name: str = "cpu", **overrides: Value) -> dict[str, Value]:
        """The inputs of an autoscaled node pool of the cluster; what is None is left out."""
        given: dict[str, Value] = {
            "agentPoolName": name,
            "resourceName": NAME,
            "resourceGroupName": GROUP,
            "mode": "User",
            "vmSize": "Standard_D4ds_v5",
            "osDiskSizeGB": 128,
            "count": 0,
            "enableAutoScaling": True,
            "minCount": 0,
            "maxCount": 8,
            "nodeLabels": {"holdfast.dev/pool": name},
            "orchestratorVersion": "1.36",
            **overrides,
        }
        return {field: value for field, value in given.items() if value is not None}

    def engine(self, name: str = "cpu") -> Engine:
        """The engine's side of a node pool."""
        return Engine(provider=self.azure, type=AGENT_POOL, name=name)
