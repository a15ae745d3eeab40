// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is the Lease of an election. A replica that may not write it retries forever, as upstream's programs do, and
// looks like a standby: so what fails is told, once for each reason, with what to do if it does not pass by itself.
type lease struct {
	resourcelock.Interface
	election Election
	failing  string // the verb that fails, "" while none does
	reason   metav1.StatusReason
}

// The verbs on a lease, as rights name them.
const (
	verbGet    = "get"
	verbCreate = "create"
	verbUpdate = "update"
)

func newLease(e Election) *lease {
	lock := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name},
		Client:    e.Client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: e.Identity},
	}
	return &lease{Interface: lock, election: e}
}

// Get implements resourcelock.Interface.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	l.note(ctx, verbGet, err)
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	l.note(ctx, verbCreate, err)
	return err
}

// Update implements resourcelock.Interface.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, record)
	l.note(ctx, verbUpdate, err)
	return err
}

func (l *lease) note(ctx context.Context, verb string, err error) {
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // the program ends
	case err == nil:
		// A read that succeeds does not show that updates work again. It does show that a lease exists, so a failed
		// create does not matter any more.
		if verb != verbGet || l.failing != verbUpdate {
			l.mended()
		}
	case verb != verbCreate && apierrors.IsNotFound(err): // it is created next
		if l.failing == verbGet {
			l.mended()
		}
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err): // another replica was quicker
		l.mended()
	case l.failing == "" || l.reason != apierrors.ReasonForError(err):
		l.failing, l.reason = verb, apierrors.ReasonForError(err)
		l.tell(ctx, err)
	}
}

func (l *lease) mended() {
	if l.failing != "" {
		l.failing = ""
		l.election.Refused(nil)
	}
}

func (l *lease) tell(ctx context.Context, err error) {
	var fix string
	log, where := l.election.Logger, l.Describe()
	switch {
	case apierrors.IsForbidden(err):
		fix = "give it get, create and update of leases (coordination.k8s.io) in the namespace " + l.election.Namespace + ", as deploy/manifests do"
	case apierrors.IsNotFound(err):
		fix = "create the namespace " + l.election.Namespace + ", or name another in leaderElection.namespace of the policy file"
	default:
		log.WarnContext(ctx, "the lease is out of reach", "lease", where, "verb", l.failing, "error", err)
		return
	}
	l.election.Refused(fmt.Errorf("the lease %s is refused to this replica, so it cannot lead", where))
	log.ErrorContext(ctx, "this replica cannot lead: the lease is refused", "lease", where, "verb", l.failing, "error", err,
		"fix", fix+"; it goes on by itself then. With no other replica, leaderElection: {enabled: false} does without")
}
