// SPDX-License-Identifier: Apache-2.0

// Package hostroom gives local machines what their host offers, to one request after another, so that nothing is promised
// twice.
package hostroom

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/power"
)

// Code is the error of EC2 for a launch that a host has no room for. It is a reason of node groups, too.
const Code = "InsufficientInstanceCapacity"

// ErrFull is of a machine that is to be started, and that the host has no room for.
var ErrFull = errors.New(Code)

// Room is what a host offers the local machines of an account. A nil *Room refuses nothing.
type Room struct {
	offer func() (capacity.Offer, error)
	mu    sync.Mutex
	// starting are the machines that were given room, and whose status still says that they wait for it.
	starting map[string]bool
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
// stopped, or were and wait for room. The reader must not be one of a cache, which may not have heard of the newest.
func (r *Room) Hold(ctx context.Context, live client.Reader) (*Left, error) {
	return r.hold(ctx, live, "")
}

// Start takes room for a machine that was stopped and is to run, as by its object alone. The error is ErrFull if there is
// none, and says what is left: then the machine waits, which its condition Ready has to say by [Code].
func (r *Room) Start(ctx context.Context, live client.Reader, m *v1alpha1.Machine) error {
	if r == nil || !m.Spec.Provider.Can(v1alpha1.RunPods) {
		return nil
	}
	left, err := r.hold(ctx, live, m.Name)
	if err != nil {
		return err
	}
	defer left.Release()
	if err := left.Take(m.Spec.Type()); err != nil {
		return fmt.Errorf("%w: the host has no room to start it: %w. Delete or stop other machines", ErrFull, err)
	}
	r.starting[m.Name] = true
	return nil
}

// waits reports whether a machine that was stopped is to run, and its host had no room for it.
func waits(m *v1alpha1.Machine) bool {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	return power.Was(m) == v1alpha1.ReasonStopped && ready != nil && ready.Reason == Code
}

// hold is Hold beside all machines but one.
func (r *Room) hold(ctx context.Context, live client.Reader, but string) (*Left, error) {
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
	starting := map[string]bool{}
	for i := range machines.Items {
		m := &machines.Items[i]
		if waits(m) && r.starting[m.Name] {
			starting[m.Name] = true
		}
		if m.Name != but && m.Spec.Provider.Can(v1alpha1.RunPods) && !power.IsStopped(m) && (!waits(m) || starting[m.Name]) {
			left.Give(m.Spec.Type())
		}
	}
	r.starting = starting
	return left, nil
}
