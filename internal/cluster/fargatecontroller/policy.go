// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/fargate"
	"muster.dev/muster/internal/plane/baseline"
)

// enforce applies the admission policies of a cluster with some profiles, and reports whether its API server follows
// them. Without profiles the policies are removed.
func (r *profiles) enforce(ctx context.Context, wanted []v1alpha1.FargateProfile) (bool, error) {
	version := fargate.MutatingVersion(r.BetaPolicies)
	if len(wanted) == 0 {
		if r.idle {
			return true, nil
		}
		err := r.withdraw(ctx, fargate.Policies(version, r.User, "", nil))
		r.idle = err == nil
		return true, err
	}
	r.idle = false
	revision, err := revisionOf(wanted)
	if err != nil {
		return false, err
	}
	if err := baseline.Apply(ctx, r.API, fargate.Policies(version, r.User, revision, wanted)); err != nil {
		return false, fmt.Errorf("applying the admission policies of Fargate: %w", err)
	}
	probe := fargate.Probe(revision)
	if err := r.API.Create(ctx, probe, client.DryRunAll); err != nil {
		return false, fmt.Errorf("asking whether the API server follows the admission policy of Fargate: %w", err)
	}
	return fargate.Follows(probe), nil
}

// revisionOf tells apart what policies are made of.
func revisionOf(wanted []v1alpha1.FargateProfile) (string, error) {
	selectors := map[string][]v1alpha1.FargateSelector{}
	for i := range wanted {
		selectors[wanted[i].Spec.Name] = wanted[i].Spec.Selectors
	}
	raw, err := json.Marshal(selectors)
	if err != nil {
		return "", fmt.Errorf("writing the selectors of Fargate profiles: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:16], nil
}

// withdraw removes objects, bindings before policies, so that no binding names a policy that is not there.
func (r *profiles) withdraw(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, binding := range []bool{true, false} {
		for _, object := range objects {
			kind := object.GetKind()
			if (kind == fargate.MutatingBindingKind || kind == fargate.ValidatingBindingKind) != binding {
				continue
			}
			if err := r.API.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
				return fmt.Errorf("removing %s %s: %w", kind, object.GetName(), err)
			}
		}
	}
	return nil
}
