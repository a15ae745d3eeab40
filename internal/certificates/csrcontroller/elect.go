// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"muster.dev/muster/internal/platform/leaderlease"
)

// Election is how replicas agree on the one that decides.
type Election struct {
	Client kubernetes.Interface
	// Namespace and Name of the Lease.
	Namespace, Name string
	// Identity of this replica, different from all others.
	Identity string
	Logger   *slog.Logger
	// Refused, if not nil, is told why this replica is not let lead, and nil once it is.
	Refused func(error)
	// Renewed, if not nil, is told until when the lease is this replica's, each time that changes.
	Renewed func(until time.Time)

	Duration time.Duration // after which a leader that says nothing has lost; 15 s if 0
	Renew    time.Duration // in which it must have renewed; 10 s if 0
	Retry    time.Duration // between attempts; 2 s if 0
}

// Elect calls lead once this replica is the leader. When ctx is done lead gets to end before the lease is given up, so
// that the next leader starts at once and never beside this one. If the lease is lost, lead's context ends with
// ErrLost, and so does Elect: the program should end and start anew.
func Elect(ctx context.Context, e Election, lead func(context.Context)) error {
	setDefault(&e.Duration, 15*time.Second)
	setDefault(&e.Renew, 10*time.Second)
	setDefault(&e.Retry, 2*time.Second)
	if e.Client == nil || e.Namespace == "" || e.Name == "" || e.Identity == "" || e.Logger == nil {
		return errors.New("an election needs a client, the namespace and name of a Lease, an identity and a logger")
	}
	if e.Refused == nil {
		e.Refused = func(error) {}
	}
	if e.Renewed == nil {
		e.Renewed = func(time.Time) {}
	}
	// The lease is held until lead has ended, which is after ctx is done.
	holding, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	leading, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	var mu sync.Mutex
	var led chan struct{} // closed when lead has ended; nil before it started
	begin := func(context.Context) {
		mu.Lock()
		if ctx.Err() != nil || leading.Err() != nil {
			mu.Unlock()
			return
		}
		led = make(chan struct{})
		mu.Unlock()
		defer close(led)
		e.Logger.InfoContext(ctx, "this replica leads", "lease", e.Namespace+"/"+e.Name, "identity", e.Identity)
		lead(leading)
	}
	lease := newLease(e)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &leaderlease.Lock{Interface: lease, Duration: e.Duration, Renewed: e.Renewed, Lost: func(ctx context.Context, holder string) {
			e.Logger.WarnContext(ctx, "the lease was lost: this replica ends", "lease", lease.Describe(), "holder", holder)
			stop(ErrLost)
			giveUp()
		}},
		LeaseDuration: e.Duration, RenewDeadline: e.Renew, RetryPeriod: e.Retry, ReleaseOnCancel: true, Name: e.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: begin,
			OnStoppedLeading: func() { stop(ErrLost) }, // nothing is lost if ctx was done before
			OnNewLeader: func(identity string) {
				if identity != e.Identity {
					e.Logger.InfoContext(ctx, "another replica leads", "lease", e.Namespace+"/"+e.Name, "leader", identity)
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("preparing the election of a leader: %w", err)
	}
	wait := func() {
		mu.Lock()
		now := led
		mu.Unlock()
		if now != nil {
			<-now
		}
	}
	unhook := context.AfterFunc(ctx, func() { wait(); giveUp() })
	defer unhook()
	elector.Run(klog.NewContext(holding, klog.Logger{})) // the lease tells what fails
	wait()
	if ctx.Err() == nil {
		return ErrLost
	}
	return nil
}
