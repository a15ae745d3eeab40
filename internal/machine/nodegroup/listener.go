// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"
)

// listener hears which machines' tokens the cluster refuses.
type listener struct {
	refused <-chan Heard
	memory  *memory
	nudges  chan<- event.TypedGenericEvent[string]
	now     func() time.Time
}

// Start listens until the context ends.
func (l *listener) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case h := <-l.refused:
			l.memory.heard(h, l.now())
			select {
			case l.nudges <- event.TypedGenericEvent[string]{Object: h.Machine}:
			case <-ctx.Done():
				return nil
			}
		}
	}
}
