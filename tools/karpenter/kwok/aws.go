package main

import (
	"strings"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// aws plays AWS's provider: whatever an EC2NodeClass names is taken to exist.
type aws struct{}

func (aws) nodeClass() status.Object { return &ec2.EC2NodeClass{} }

func (aws) finalizer() string { return ec2.TerminationFinalizer }

func (p aws) settle(class status.Object) {
	nodeClass := class.(*ec2.EC2NodeClass)
	nodeClass.Status.AMIs = []ec2.AMI{{ID: p.image(class), Requirements: []corev1.NodeSelectorRequirement{}}}
	settled(
		class,
		ec2.ConditionTypeAMIsReady, ec2.ConditionTypeSubnetsReady, ec2.ConditionTypeSecurityGroupsReady,
		ec2.ConditionTypeInstanceProfileReady, ec2.ConditionTypePlacementGroupReady,
		ec2.ConditionTypeCapacityReservationsReady, ec2.ConditionTypeValidationSucceeded,
	)
}

// image stands for the AMI that the first selector term finds: another term, another image.
func (aws) image(class status.Object) string {
	terms := lo.Map(class.(*ec2.EC2NodeClass).Spec.AMISelectorTerms, func(term ec2.AMISelectorTerm, _ int) string {
		return lo.CoalesceOrEmpty(term.Alias, term.ID, term.Name, term.SSMParameter)
	})
	return strings.Join(terms, ",")
}

func (aws) marks(class status.Object) map[string]string {
	return map[string]string{
		ec2.AnnotationEC2NodeClassHash:        class.(*ec2.EC2NodeClass).Hash(nil),
		ec2.AnnotationEC2NodeClassHashVersion: ec2.EC2NodeClassHashVersion,
	}
}

func (aws) label(*cloudprovider.Offering) {}

func (aws) imageDrift() cloudprovider.DriftReason { return "AMIDrift" }
