package main

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
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

// waitingPeriod is how often a class that cannot go yet says so: clouds' providers fire their event as often.
const waitingPeriod = 10 * time.Minute

// nodeClassController does to a node class what its cloud's provider does when the cloud has everything it names.
type nodeClassController struct {
	provider provider
	client   client.Client
	recorder events.Recorder
}

func (c *nodeClassController) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	class := emptyOf(c.provider.nodeClass())
	if err := c.client.Get(ctx, request.NamespacedName, class); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	stored := copyOf(class)
	if !class.GetDeletionTimestamp().IsZero() {
		return c.release(ctx, class, stored)
	}
	if controllerutil.AddFinalizer(class, c.provider.finalizer()) {
		if err := c.client.Patch(ctx, class, lockedFrom(stored)); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		stored = copyOf(class)
	}
	c.provider.settle(class)
	if equality.Semantic.DeepEqual(stored, class) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(c.client.Status().Patch(ctx, class, lockedFrom(stored)))
}

// release lets the class go when no machine is of it any more.
func (c *nodeClassController) release(ctx context.Context, class, stored status.Object) (reconcile.Result, error) {
	claims := &karpv1.NodeClaimList{}
	if err := c.client.List(ctx, claims, nodeclaim.ForNodeClass(class)); err != nil {
		return reconcile.Result{}, err
	}
	if len(claims.Items) > 0 {
		c.recorder.Publish(waitingEvent(class, claims.Items))
		return reconcile.Result{RequeueAfter: waitingPeriod}, nil
	}
	if !controllerutil.RemoveFinalizer(class, c.provider.finalizer()) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(c.client.Patch(ctx, class, lockedFrom(stored)))
}

func (c *nodeClassController) Register(_ context.Context, m manager.Manager) error {
	kind := groupKind(c.provider.nodeClass())
	gone := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
	classOf := func(_ context.Context, claim client.Object) []reconcile.Request {
		ref := claim.(*karpv1.NodeClaim).Spec.NodeClassRef
		if ref.GroupKind() != kind {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: ref.Name}}}
	}
	return ctrl.NewControllerManagedBy(m).
		Named("nodeclass."+strings.ToLower(kind.Kind)).
		For(c.provider.nodeClass()).
		Watches(&karpv1.NodeClaim{}, handler.EnqueueRequestsFromMapFunc(classOf), builder.WithPredicates(gone)).
		Complete(c)
}

func waitingEvent(class status.Object, claims []karpv1.NodeClaim) events.Event {
	names := lo.Map(claims, func(claim karpv1.NodeClaim, _ int) string { return claim.Name })
	return events.Event{
		InvolvedObject: class,
		Type:           corev1.EventTypeNormal,
		Reason:         "WaitingOnNodeClaimTermination",
		Message:        fmt.Sprintf("Waiting on NodeClaim termination for %s", strings.Join(names, ", ")),
		DedupeValues:   []string{string(class.GetUID())},
	}
}

// lockedFrom patches lists, which finalizers and conditions are, only where nobody else has changed them meanwhile.
func lockedFrom(stored client.Object) client.Patch {
	return client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
}

func emptyOf(class status.Object) status.Object {
	return reflect.New(reflect.TypeOf(class).Elem()).Interface().(status.Object)
}

func copyOf(class status.Object) status.Object { return class.DeepCopyObject().(status.Object) }
