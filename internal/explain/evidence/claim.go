// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
)

// Claim reads a PersistentVolumeClaim with its Events, and returns its facts.
func Claim(ctx context.Context, api client.Reader, at Place, now time.Time) (diagnosis.Facts, error) {
	var claim corev1.PersistentVolumeClaim
	if err := readOne(ctx, api, at, &claim); err != nil {
		return diagnosis.Facts{}, err
	}
	f := diagnosis.Facts{
		Kind: "volume", Name: at.String(), Names: at.names(), Since: claim.CreationTimestamp.Time, Patience: podPatience, Healthy: claim.Status.Phase == corev1.ClaimBound,
	}
	if f.Healthy {
		return f, nil
	}
	f.Evidence = append(f.Evidence, diagnosis.Evidence{
		Source: cause.FromClaim, Object: "persistentvolumeclaim/" + at.String(), Look: "kubectl describe pvc " + at.names()["$NAME"],
		Code: "Phase/" + string(claim.Status.Phase), Text: "volume: " + claim.Spec.VolumeName, Trouble: claim.Status.Phase == corev1.ClaimLost,
	})
	addEvents(ctx, &f, api, "PersistentVolumeClaim", at, now)
	for _, e := range f.Evidence {
		if e.Code == waitsForPod {
			f.Idle = true
		}
	}
	return f, nil
}

// waitsForPod is the reason of the Event of a claim that is bound once a pod uses it (kubernetes,
// pkg/controller/volume/events).
const waitsForPod = "WaitForFirstConsumer"
