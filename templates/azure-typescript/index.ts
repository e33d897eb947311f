import * as holdfast from "@holdfast-dev/holdfast";
import * as pulumi from "@pulumi/pulumi";

const config = new pulumi.Config();
const location = config.require("location");
const clientCidr = config.require("clientCidr");
const training = new holdfast.AksTrainingCluster("training", {
  location: location,
  protected: false,
  cluster: {
    scaling: "nap",
    access: { public: { cidrs: [clientCidr] } },
    systemNodes: { vmSize: "Standard_D4ds_v5", count: 2 },
  },
  network: { cidr: "10.40.0.0/16" },
  pools: [
    {
      name: "cpu",
      capacity: "on-demand",
      families: ["Dds_v5", "Dads_v5"],
      vcpus: [2, 4, 8, 16],
      maxNodes: 4,
      default: true,
    },
    {
      name: "cpu-spot",
      capacity: "spot",
      families: ["Dds_v5", "Dads_v5", "Dds_v4", "Dads_v6"],
      vcpus: [2, 4, 8, 16],
      maxNodes: 4,
    },
  ],
  checkpoints: { retainDays: 7, redundancy: "Standard_LRS" },
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
