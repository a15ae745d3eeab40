// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// sink writes Events while the lease is this replica's. Events that wait when the lease runs out are written once it is
// renewed. If another replica takes the lease, it may have written the same Events; this program ends then, and its
// Events are lost.
type sink struct {
	record.EventSink
	ctx   context.Context            // nobody hands one to a sink
	await func(context.Context) bool // until the lease is this replica's; false if ctx is done before
}

// Create implements record.EventSink.
func (s *sink) Create(e *corev1.Event) (*corev1.Event, error) {
	if !s.await(s.ctx) {
		return e, nil // the program ends: an error would be tried again
	}
	return s.EventSink.Create(e)
}

// Update implements record.EventSink.
func (s *sink) Update(e *corev1.Event) (*corev1.Event, error) {
	if !s.await(s.ctx) {
		return e, nil
	}
	return s.EventSink.Update(e)
}

// Patch implements record.EventSink.
func (s *sink) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	if !s.await(s.ctx) {
		return e, nil
	}
	return s.EventSink.Patch(e, data)
}
