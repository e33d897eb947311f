import * as holdfast from "@holdfast-dev/holdfast";
import * as pulumi from "@pulumi/pulumi";

const config = new pulumi.Config();
const clientCidr = config.require("clientCidr");
const training = new holdfast.EksTrainingCluster("training", {
  protected: false,
  cluster: { publicAccessCidrs: [clientCidr] },
  network: { cidr: "10.40.0.0/16", zones: 2, nat: "single" },
  pools: [
    {
      name: "cpu",
      capacity: "on-demand",
      families: ["m7i", "m7a", "m6i"],
      sizes: ["large", "xlarge", "2xlarge", "4xlarge"],
      maxNodes: 4,
      default: true,
    },
    {
      name: "cpu-spot",
      capacity: "spot",
      families: ["c7i", "c7a", "c6i", "m7i", "m7a", "m6i"],
      sizes: ["large", "xlarge"],
      maxNodes: 4,
    },
  ],
  checkpoints: { retainDays: 7, kms: false },
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
