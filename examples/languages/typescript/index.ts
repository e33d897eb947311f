// Two EKS training clusters in one program, each in the region of its own provider.
import * as holdfast from "@holdfast-dev/holdfast";
import * as pulumi from "@pulumi/pulumi";

// What `new aws.Provider(region, { region })` of @pulumi/aws registers.
class AwsProvider extends pulumi.ProviderResource {
  constructor(region: string) {
    super("aws", region, { region });
  }
}

const instanceTypes = ["m7i.xlarge", "m6i.xlarge"];
for (const region of ["us-east-2", "us-west-2"]) {
  new holdfast.EksTrainingCluster(
    `in-${region}`,
    {
      cluster: { privateAccessCidrs: ["10.0.0.0/8"] },
      protected: false,
      pools: [
        { name: "cpu", capacity: "on-demand", instanceTypes, maxNodes: 20, default: true },
        { name: "cpu-spot", capacity: "spot", instanceTypes, maxNodes: 8 },
      ],
      namespaces: [
        { name: "vision", ladder: [{ pool: "cpu-spot", procurementTimeout: "10m" }, { pool: "cpu" }] },
      ],
    },
    { providers: [new AwsProvider(region)] },
  );
}
