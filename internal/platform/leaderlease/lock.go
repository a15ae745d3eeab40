// SPDX-License-Identifier: Apache-2.0

package leaderlease

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ErrLost means that another replica has the lease, or had it since.
var ErrLost = errors.New("the lease was lost")

// Lock is the lease of an election that ends a leader with the first answer that shows another holder, or none. It is
// for one election.
type Lock struct {
	resourcelock.Interface
	// Duration is after how long a leader that says nothing has lost.
	Duration time.Duration
	// Renewed is told until when the lease is this replica's, each time that changes.
	Renewed func(until time.Time)
	// Lost is told, once, that the lease is or was another's, whose name may be empty. It must end the leader.
	Lost func(ctx context.Context, holder string)

	held bool // by this replica, as far as it knows
	gone bool // Lost was called: nothing is tried any more
}

// Get implements resourcelock.Interface.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && l.held && record.HolderIdentity != l.Identity() {
		l.held, l.gone = false, true
		l.Lost(ctx, record.HolderIdentity)
	}
	if l.gone {
		return nil, nil, ErrLost
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	asked := time.Now()
	err := l.Interface.Create(ctx, record)
	l.renewed(record, asked, err)
	return err
}

// Update implements resourcelock.Interface.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	asked := time.Now()
	err := l.Interface.Update(ctx, record)
	l.renewed(record, asked, err)
	return err
}

// renewed counts from before it was asked: others count from when they saw it, which is later.
func (l *Lock) renewed(record resourcelock.LeaderElectionRecord, asked time.Time, err error) {
	if err == nil && record.HolderIdentity == l.Identity() {
		l.held = true
		l.Renewed(asked.Add(l.Duration))
	}
}
