// Two NodePools, a training namespace with its ladder, and a Job: the same program as in the other languages here.

import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";

const SPOT = { key: "karpenter.sh/capacity-type", value: "spot", effect: "NoSchedule" };
const pods = new pulumi.Config().requireNumber("pods");

function nodePool(name: string, capacity: string, taints?: (typeof SPOT)[]): void {
  const requirements = [
    { key: "karpenter.sh/capacity-type", operator: "In", values: [capacity] },
    { key: "node.kubernetes.io/instance-type", operator: "In", values: ["p4d.24xlarge"] },
  ];
  new kubernetes.apiextensions.CustomResource(name, {
    apiVersion: "karpenter.sh/v1",
    kind: "NodePool",
    metadata: { name },
    spec: {
      template: {
        metadata: { labels: { "holdfast.dev/pool": name } },
        spec: {
          nodeClassRef: { group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default" },
          requirements,
          taints,
          expireAfter: "Never",
        },
      },
      limits: { cpu: 768 },
    },
  });
}

nodePool("a100-spot", "spot", [SPOT]);
nodePool("a100", "on-demand");
const namespace = new kubernetes.core.v1.Namespace("vision", {
  metadata: { name: "vision", labels: { "holdfast.dev/training": "true" } },
});
new kubernetes.core.v1.ResourceQuota("vision-quota", {
  metadata: { name: "quota", namespace: namespace.metadata.name },
  spec: { hard: { pods: pulumi.secret("64") } },
});
new kubernetes.apiextensions.CustomResource("vision-ladder", {
  apiVersion: "holdfast.dev/v1alpha1",
  kind: "FallbackPolicy",
  metadata: { name: "ladder", namespace: namespace.metadata.name },
  spec: {
    tiers: [{ pool: "a100-spot", maxFailures: 5, procurementTimeout: "20m" }, { pool: "a100" }],
    shapes: [
      {
        name: "pretraining",
        pods,
        cpu: "90",
        memory: "900Gi",
        gpus: 8,
        accelerator: "a100",
        tolerations: [SPOT],
      },
    ],
  },
});
new kubernetes.batch.v1.Job("evaluation", {
  metadata: { name: "evaluation", namespace: namespace.metadata.name },
  spec: {
    parallelism: 2,
    completions: 2,
    template: {
      spec: {
        restartPolicy: "Never",
        nodeSelector: { "holdfast.dev/pool": "a100" },
        containers: [
          {
            name: "evaluation",
            image: "registry.example.com/evaluation:1.4.2",
            resources: {
              requests: { cpu: "8", memory: "64Gi" },
              limits: { "nvidia.com/gpu": "1" },
            },
          },
        ],
      },
    },
  },
});
