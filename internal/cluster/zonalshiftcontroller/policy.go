// SPDX-License-Identifier: Apache-2.0

package zonalshiftcontroller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/zonalshift"
	"muster.dev/muster/internal/plane/baseline"
)

// policy makes or removes the policy of the cluster and its binding, and reports whether that wrote anything. A policy
// that somebody has deleted or changed while its shift was applied is made again, with an Event.
func (r *reconciler) policy(ctx context.Context, of *v1alpha1.Cluster, plan zonalshift.Plan) (written bool, err error) {
	version := zonalshift.PolicyVersion(r.BetaPolicies)
	if plan.Active == nil {
		return r.remove(ctx, version)
	}
	wanted := zonalshift.Policy(version, plan.Zones())
	for _, object := range wanted {
		is := object.DeepCopy()
		err := r.API.Get(ctx, client.ObjectKeyFromObject(object), is)
		if err == nil && equality.Semantic.DeepEqual(has(is, object), object.Object["spec"]) {
			continue
		}
		if client.IgnoreNotFound(err) != nil {
			return written, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if err := baseline.Apply(ctx, r.API, []*unstructured.Unstructured{object}); err != nil {
			return written, err
		}
		written = true
	}
	if written && r.applied == plan.Active.Name {
		r.recorder.Eventf(of, nil, corev1.EventTypeWarning, reasonRestored, "Shift", "somebody has deleted or changed the policy %s, which zonal shift %s needs: it is there again", zonalshift.PolicyName, plan.Active.Name)
	}
	return written, nil
}

// has is the spec of an object, as far as another one says it: what the API server's defaults add is left out.
func has(is, wanted *unstructured.Unstructured) any {
	spec, _, _ := unstructured.NestedFieldNoCopy(is.Object, "spec")
	said, _, _ := unstructured.NestedFieldNoCopy(wanted.Object, "spec")
	return within(spec, said)
}

// within is a value without the members of maps that another value does not have.
func within(is, wanted any) any {
	switch said := wanted.(type) {
	case map[string]any:
		there, _ := is.(map[string]any)
		kept := map[string]any{}
		for key := range said {
			if value, ok := there[key]; ok {
				kept[key] = within(value, said[key])
			}
		}
		return kept
	case []any:
		there, _ := is.([]any)
		if len(there) != len(said) {
			return is
		}
		kept := make([]any, 0, len(said))
		for i := range said {
			kept = append(kept, within(there[i], said[i]))
		}
		return kept
	}
	return is
}

// remove removes the binding before the policy, so that no binding ever names a policy that is not there.
func (r *reconciler) remove(ctx context.Context, version string) (written bool, err error) {
	for _, kind := range []string{zonalshift.BindingKind, zonalshift.PolicyKind} {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(zonalshift.PolicyGroup + "/" + version)
		object.SetKind(kind)
		object.SetName(zonalshift.PolicyName)
		err := r.API.Delete(ctx, object)
		switch {
		case err == nil:
			written = true
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return written, fmt.Errorf("deleting %s %s: %w", kind, zonalshift.PolicyName, err)
		}
	}
	return written, nil
}
