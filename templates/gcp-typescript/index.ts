import * as holdfast from "@holdfast-dev/holdfast";
import * as pulumi from "@pulumi/pulumi";

const config = new pulumi.Config();
const clientCidr = config.require("clientCidr");
const training = new holdfast.GkeTrainingCluster("training", {
  protected: false,
  cluster: {
    channel: "regular",
    location: "us-central1-a",
    access: { authorizedNetworks: [clientCidr] },
    systemNodes: { machineType: "e2-standard-4", perZone: 1, sparePerZone: 1 },
  },
  network: { cidr: "10.40.0.0/20", podsCidr: "10.44.0.0/16", servicesCidr: "10.40.16.0/20" },
  pools: [
    { name: "cpu", capacity: "on-demand", machineType: "n2-standard-4", maxNodes: 4, default: true },
    {
      name: "cpu-spot",
      capacity: "spot",
      machineType: "n2-standard-4",
      maxNodes: 4,
      zones: ["us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f"],
    },
  ],
  checkpoints: { retainDays: 7 },
  namespaces: [
    {
      name: "tabular",
      ladder: [{ pool: "cpu-spot", maxFailures: 5, procurementTimeout: "10m" }, { pool: "cpu" }],
      fallback: { returnAfter: "1h" },
      shapes: [{ name: "gradient-boosting", pods: 2, cpu: 3, memory: "8Gi" }],
    },
  ],
});

export const cluster = training.cluster;
export const kubeconfig = training.kubeconfig;
