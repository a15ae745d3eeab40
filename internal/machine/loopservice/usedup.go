// SPDX-License-Identifier: Apache-2.0

package loopservice

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine/local"
)

// reasonUsedUp is the reason of Events of a Machine that was refused a loop device since it has all that it may have.
const reasonUsedUp = "LoopDevicesUsedUp"

// UsedUp returns a function that records an Event of a Machine which has all the loop devices that it may have. A
// machine that asks again and again has one Event, which the recorder counts on. Other refusals are the machine's own
// affair: it has the reason in its answer.
func UsedUp(plane client.Reader, recorder events.EventRecorder) func(ctx context.Context, machine string, err error) {
	return func(ctx context.Context, machine string, err error) {
		if !errors.Is(err, local.ErrTooManyLoops) {
			return
		}
		m := &v1alpha1.Machine{}
		if err := plane.Get(ctx, client.ObjectKey{Name: machine}, m); err != nil {
			return // it is being deleted
		}
		recorder.Eventf(m, nil, corev1.EventTypeWarning, reasonUsedUp, "Attach", "%s", err.Error())
	}
}
