package main

import (
	"strings"

	aks "github.com/Azure/karpenter-provider-azure/pkg/apis/v1beta1"
	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// azure plays the provider that AKS runs for node auto-provisioning.
type azure struct {
	// version is the control plane's, as v1.36.3: nodes follow it.
	version string
}

func (azure) nodeClass() status.Object { return &aks.AKSNodeClass{} }

func (azure) finalizer() string { return aks.TerminationFinalizer }

func (p azure) settle(class status.Object) {
	nodeClass := class.(*aks.AKSNodeClass)
	nodeClass.Status.Images = []aks.NodeImage{
		{ID: p.image(class), Requirements: []corev1.NodeSelectorRequirement{}},
	}
	nodeClass.Status.KubernetesVersion = lo.ToPtr(strings.TrimPrefix(p.version, "v"))
	settled(
		class,
		aks.ConditionTypeImagesReady, aks.ConditionTypeKubernetesVersionReady, aks.ConditionTypeSubnetsReady,
		aks.ConditionTypeValidationSucceeded, aks.ConditionTypeLocalDNSReady,
	)
}

// image stands for the newest one of the family: another family, another image.
func (azure) image(class status.Object) string {
	family := lo.FromPtr(class.(*aks.AKSNodeClass).Spec.ImageFamily)
	return "AKS" + lo.CoalesceOrEmpty(family, aks.UbuntuImageFamily) + "/newest"
}

func (azure) marks(class status.Object) map[string]string {
	return map[string]string{
		aks.AnnotationAKSNodeClassHash:        class.(*aks.AKSNodeClass).Hash(),
		aks.AnnotationAKSNodeClassHashVersion: aks.AKSNodeClassHashVersion,
	}
}

// label tells spot by AKS's own two labels, which pods may select it by.
func (azure) label(offered *cloudprovider.Offering) {
	priority := aks.PriorityRegular
	if offered.CapacityType() == karpv1.CapacityTypeSpot {
		priority = aks.PrioritySpot
	}
	for _, key := range []string{aks.AKSLabelScaleSetPriority, aks.AKSLabelPriority} {
		offered.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, priority))
	}
}

func (azure) imageDrift() cloudprovider.DriftReason { return "ImageDrift" }

// sellReservedCapacity takes back what Azure's package, by being linked, does to all clouds: Azure has no capacity type
// for machines that are reserved, AWS has.
func (c *simulatedCloud) sellReservedCapacity() {
	if _, found := c.playerOf(azure{}.nodeClass()); !found {
		karpv1.WellKnownValuesForRequirements[karpv1.CapacityTypeLabelKey].Insert(karpv1.CapacityTypeReserved)
	}
}
