package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/utils/nodeclaim"
)

// waitingPeriod is how often a class that cannot go yet says so: AWS's provider fires its event as often.
const waitingPeriod = 10 * time.Minute

// nodeClassController does to an EC2NodeClass what AWS's provider does when AWS has everything the class names.
type nodeClassController struct {
	client   client.Client
	recorder events.Recorder
}

func (c *nodeClassController) Reconcile(ctx context.Context, class *ec2.EC2NodeClass) (reconcile.Result, error) {
	stored := class.DeepCopy()
	if !class.DeletionTimestamp.IsZero() {
		return c.release(ctx, class, stored)
	}
	if controllerutil.AddFinalizer(class, ec2.TerminationFinalizer) {
		if err := c.client.Patch(ctx, class, lockedFrom(stored)); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		stored = class.DeepCopy()
	}
	class.Status.AMIs = []ec2.AMI{{ID: image(class), Requirements: []corev1.NodeSelectorRequirement{}}}
	for _, condition := range []string{
		ec2.ConditionTypeAMIsReady, ec2.ConditionTypeSubnetsReady, ec2.ConditionTypeSecurityGroupsReady,
		ec2.ConditionTypeInstanceProfileReady, ec2.ConditionTypePlacementGroupReady,
		ec2.ConditionTypeCapacityReservationsReady, ec2.ConditionTypeValidationSucceeded,
	} {
		if class.StatusConditions().IsDependentCondition(condition) {
			class.StatusConditions().SetTrue(condition)
		}
	}
	if equality.Semantic.DeepEqual(stored, class) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(c.client.Status().Patch(ctx, class, lockedFrom(stored)))
}

// release lets the class go when no machine is of it any more.
func (c *nodeClassController) release(ctx context.Context, class, stored *ec2.EC2NodeClass) (reconcile.Result, error) {
	claims := &karpv1.NodeClaimList{}
	if err := c.client.List(ctx, claims, nodeclaim.ForNodeClass(class)); err != nil {
		return reconcile.Result{}, err
	}
	if len(claims.Items) > 0 {
		c.recorder.Publish(waitingEvent(class, claims.Items))
		return reconcile.Result{RequeueAfter: waitingPeriod}, nil
	}
	if !controllerutil.RemoveFinalizer(class, ec2.TerminationFinalizer) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(c.client.Patch(ctx, class, lockedFrom(stored)))
}

func (c *nodeClassController) Register(_ context.Context, m manager.Manager) error {
	gone := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
	classOf := func(_ context.Context, claim client.Object) []reconcile.Request {
		ref := claim.(*karpv1.NodeClaim).Spec.NodeClassRef
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: ref.Name}}}
	}
	return ctrl.NewControllerManagedBy(m).
		Named("nodeclass").
		For(&ec2.EC2NodeClass{}).
		Watches(&karpv1.NodeClaim{}, handler.EnqueueRequestsFromMapFunc(classOf), builder.WithPredicates(gone)).
		Complete(reconcile.AsReconciler(m.GetClient(), c))
}

// image stands for the AMI that the first selector term finds: another term, another image.
func image(class *ec2.EC2NodeClass) string {
	terms := lo.Map(class.Spec.AMISelectorTerms, func(term ec2.AMISelectorTerm, _ int) string {
		return lo.CoalesceOrEmpty(term.Alias, term.ID, term.Name, term.SSMParameter)
	})
	return strings.Join(terms, ",")
}

func waitingEvent(class *ec2.EC2NodeClass, claims []karpv1.NodeClaim) events.Event {
	names := lo.Map(claims, func(claim karpv1.NodeClaim, _ int) string { return claim.Name })
	return events.Event{
		InvolvedObject: class,
		Type:           corev1.EventTypeNormal,
		Reason:         "WaitingOnNodeClaimTermination",
		Message:        fmt.Sprintf("Waiting on NodeClaim termination for %s", strings.Join(names, ", ")),
		DedupeValues:   []string{string(class.UID)},
	}
}

// lockedFrom patches lists, which finalizers and conditions are, only where nobody else has changed them meanwhile.
func lockedFrom(stored client.Object) client.Patch {
	return client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
}
