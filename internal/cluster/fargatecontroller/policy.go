// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/fargate"
	"muster.dev/muster/internal/plane/baseline"
)

// assumed is how long an API server has for following new policies where something else refuses the probe. Mostly an API
// server takes less than a second.
const assumed = 10 * time.Second

// enforce applies the admission policies of a cluster with some profiles, and returns why its API server does not follow
// them yet; "" if it does. Without profiles the policies are removed.
//
// A webhook or a policy of the cluster's own may refuse the probe, such as for its image, or because the webhook itself
// is away. The refusal does not say what the API server does with other pods, and it may go on for good. So the policies
// count as followed after a while: they need no longer than that, and the profile may select the pods of that webhook.
func (r *profiles) enforce(ctx context.Context, wanted []v1alpha1.FargateProfile) (waits string, err error) {
	version := fargate.MutatingVersion(r.BetaPolicies)
	if len(wanted) == 0 {
		if r.idle {
			return "", nil
		}
		err := r.withdraw(ctx, fargate.Policies(version, r.User, "", nil))
		r.idle = err == nil
		return "", err
	}
	r.idle = false
	revision, err := revisionOf(wanted)
	if err != nil {
		return "", err
	}
	if err := baseline.Apply(ctx, r.API, fargate.Policies(version, r.User, revision, wanted)); err != nil {
		return "", fmt.Errorf("applying the admission policies of Fargate: %w", err)
	}
	if r.applied.revision != revision {
		r.applied.revision, r.applied.at = revision, r.Now()
	}
	probe := fargate.Probe(revision)
	err = r.API.Create(ctx, probe, client.DryRunAll)
	_, refused := errors.AsType[*apierrors.StatusError](err)
	switch {
	case refused && r.Now().Sub(r.applied.at) < assumed:
		return fmt.Sprintf("whether the API server follows its admission policy is not known, and is assumed after %s: the pod that asks for it is refused: %v", assumed, err), nil
	case refused:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("asking whether the API server follows the admission policy of Fargate: %w", err)
	case !fargate.Follows(probe):
		return "the API server does not follow its admission policy yet", nil
	}
	return "", nil
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
