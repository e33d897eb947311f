// Two NodePools, a training namespace with its ladder, and a Job: the same program as in the other languages here.
package main

import (
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	batchv1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/batch/v1"
	corev1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

var spot = map[string]string{"key": "karpenter.sh/capacity-type", "value": "spot", "effect": "NoSchedule"}

func nodePool(ctx *pulumi.Context, name, capacity string, taints []map[string]string) error {
	requirement := func(key, value string) map[string]any {
		return map[string]any{"key": key, "operator": "In", "values": []string{value}}
	}
	_, err := apiextensions.NewCustomResource(ctx, name, &apiextensions.CustomResourceArgs{
		ApiVersion: pulumi.String("karpenter.sh/v1"),
		Kind:       pulumi.String("NodePool"),
		Metadata:   &metav1.ObjectMetaArgs{Name: pulumi.String(name)},
		OtherFields: kubernetes.UntypedArgs{
			"spec": map[string]any{
				"template": map[string]any{
					"metadata": map[string]any{"labels": map[string]string{"holdfast.dev/pool": name}},
					"spec": map[string]any{
						"nodeClassRef": map[string]string{
							"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default",
						},
						"requirements": []map[string]any{
							requirement("karpenter.sh/capacity-type", capacity),
							requirement("node.kubernetes.io/instance-type", "p4d.24xlarge"),
						},
						"taints":      taints,
						"expireAfter": "Never",
					},
				},
				"limits": map[string]any{"cpu": 768},
			},
		},
	})
	return err
}

func program(ctx *pulumi.Context) error {
	pods := config.New(ctx, "").RequireInt("pods")
	if err := nodePool(ctx, "a100-spot", "spot", []map[string]string{spot}); err != nil {
		return err
	}
	if err := nodePool(ctx, "a100", "on-demand", nil); err != nil {
		return err
	}
	namespace, err := corev1.NewNamespace(ctx, "vision", &corev1.NamespaceArgs{
		Metadata: &metav1.ObjectMetaArgs{
			Name:   pulumi.String("vision"),
			Labels: pulumi.StringMap{"holdfast.dev/training": pulumi.String("true")},
		},
	})
	if err != nil {
		return err
	}
	inside := func(name string) *metav1.ObjectMetaArgs {
		return &metav1.ObjectMetaArgs{Name: pulumi.String(name), Namespace: namespace.Metadata.Name()}
	}
	_, err = corev1.NewResourceQuota(ctx, "vision-quota", &corev1.ResourceQuotaArgs{
		Metadata: inside("quota"),
		Spec: &corev1.ResourceQuotaSpecArgs{
			Hard: pulumi.StringMap{"pods": pulumi.ToSecret(pulumi.String("64")).(pulumi.StringOutput)},
		},
	})
	if err != nil {
		return err
	}
	_, err = apiextensions.NewCustomResource(ctx, "vision-ladder", &apiextensions.CustomResourceArgs{
		ApiVersion: pulumi.String("holdfast.dev/v1alpha1"),
		Kind:       pulumi.String("FallbackPolicy"),
		Metadata:   inside("ladder"),
		OtherFields: kubernetes.UntypedArgs{
			"spec": pulumi.Map{
				"tiers": pulumi.Array{
					pulumi.Map{
						"pool":               pulumi.String("a100-spot"),
						"maxFailures":        pulumi.Int(5),
						"procurementTimeout": pulumi.String("20m"),
					},
					pulumi.Map{"pool": pulumi.String("a100")},
				},
				"shapes": pulumi.Array{
					pulumi.Map{
						"name":        pulumi.String("pretraining"),
						"pods":        pulumi.Int(pods),
						"cpu":         pulumi.String("90"),
						"memory":      pulumi.String("900Gi"),
						"gpus":        pulumi.Int(8),
						"accelerator": pulumi.String("a100"),
						"tolerations": pulumi.Any([]map[string]string{spot}),
					},
				},
			},
		},
	})
	if err != nil {
		return err
	}
	_, err = batchv1.NewJob(ctx, "evaluation", &batchv1.JobArgs{
		Metadata: inside("evaluation"),
		Spec: &batchv1.JobSpecArgs{
			Parallelism: pulumi.Int(2),
			Completions: pulumi.Int(2),
			Template: &corev1.PodTemplateSpecArgs{
				Spec: &corev1.PodSpecArgs{
					RestartPolicy: pulumi.String("Never"),
					NodeSelector:  pulumi.StringMap{"holdfast.dev/pool": pulumi.String("a100")},
					Containers: corev1.ContainerArray{
						&corev1.ContainerArgs{
							Name:  pulumi.String("evaluation"),
							Image: pulumi.String("registry.example.com/evaluation:1.4.2"),
							Resources: &corev1.ResourceRequirementsArgs{
								Requests: pulumi.StringMap{"cpu": pulumi.String("8"), "memory": pulumi.String("64Gi")},
								Limits:   pulumi.StringMap{"nvidia.com/gpu": pulumi.String("1")},
							},
						},
					},
				},
			},
		},
	})
	return err
}

func main() {
	pulumi.Run(program)
}
