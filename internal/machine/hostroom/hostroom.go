// SPDX-License-Identifier: Apache-2.0

// Package hostroom gives local machines what their host offers, to one request after another, so that nothing is promised
// twice.
package hostroom

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/power"
)

// Code is the error of EC2 for a launch that a host has no room for. It is a reason of node groups, too.
const Code = "InsufficientInstanceCapacity"

// Room is what a host offers the local machines of an account. A nil *Room refuses nothing.
type Room struct {
	offer func() (capacity.Offer, error)
	mu    sync.Mutex
}

// New returns the room of a host.
func New(offer func() (capacity.Offer, error)) *Room { return &Room{offer: offer} }

// Left is what the host has left for more machines. Nobody else is told so until it is released: machines that are made
// by then are counted the next time.
type Left struct {
	capacity.Offer
	// Release lets the next one ask.
	Release func()
}

// Hold returns what is left beside all machines that there are, also those that are being ended, but not those that are
// stopped. The reader must not be one of a cache, which may not have heard of the newest.
func (r *Room) Hold(ctx context.Context, live client.Reader) (*Left, error) {
	if r == nil {
		return &Left{Release: func() {}}, nil
	}
	r.mu.Lock()
	left := &Left{Release: sync.OnceFunc(r.mu.Unlock)}
	offer, err := r.offer()
	var machines v1alpha1.MachineList
	if err == nil {
		err = live.List(ctx, &machines)
	}
	if err != nil {
		left.Release()
		return nil, fmt.Errorf("looking at what the host has left for machines: %w", err)
	}
	left.Offer = offer
	for i := range machines.Items {
		if m := &machines.Items[i]; m.Spec.Provider.Can(v1alpha1.RunPods) && !power.IsStopped(m) {
			left.Give(m.Spec.Type())
		}
	}
	return left, nil
}
