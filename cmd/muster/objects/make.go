// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/internal/plane/baseline"
)

// Check has the API server check objects as Make would make them, and keeps nothing. There is an error for each object that it refuses.
func Check(ctx context.Context, p *kinds.Client, objects []client.Object) []error {
	var wrong []error
	at := ""
	for _, object := range objects {
		if _, is := object.(*corev1.Namespace); is {
			if err := p.Read(ctx, object.GetName(), &corev1.Namespace{}); apierrors.IsNotFound(err) {
				at = metav1.NamespaceDefault // nothing is checked in a namespace that is not there
			}
			continue
		}
		checked, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			continue
		}
		if at != "" {
			checked.SetNamespace(at)
		}
		if _, err := makeOne(ctx, p, checked, dryRunServer); err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong
}

// Make makes one object as muster create does: an equal one that is there stays as it is, and another one is an error. It says what became of it:
// created or unchanged.
func Make(ctx context.Context, p *kinds.Client, object client.Object) (did string, err error) {
	return makeOne(ctx, p, object, dryRunNone)
}

func makeOne(ctx context.Context, p *kinds.Client, object client.Object, dryRun string) (string, error) {
	switch object := object.(type) {
	case *corev1.Namespace:
		return made(dryRun), p.Within(ctx, func(ctx context.Context) error { return baseline.EnsureNamespace(ctx, p, object.Name) })
	case *v1alpha1.Cluster:
		return createCluster(ctx, p, object, dryRun)
	case *v1alpha1.NodeGroup:
		return createGroup(ctx, p, object, true, dryRun)
	case *v1alpha1.Addon:
		var there v1alpha1.Addon
		exists, err := create(ctx, p, object, dryRun, &there)
		if err != nil || !exists {
			return made(dryRun), err
		}
		wanted := object.DeepCopy()
		if wanted.Spec.ResolveConflicts == "" {
			wanted.Spec.ResolveConflicts = v1alpha1.ConflictsNone
		}
		switch difference := addonDifference(&there, wanted); {
		case there.DeletionTimestamp != nil:
			return "", fmt.Errorf("add-on %q is being deleted: try again when it is gone", object.Name)
		case difference != "":
			return "", fmt.Errorf("add-on %q exists with another %s: aws eks update-addon or kubectl apply changes it", object.Name, difference)
		}
		return unchanged(dryRun), nil
	}
	return "", fmt.Errorf("an object of type %T is not made here", object)
}
