// SPDX-License-Identifier: Apache-2.0

package cloudformation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/cloud/cloudformation/provision"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
	"muster.dev/muster/internal/cloud/cloudformation/stackrecord"
	"muster.dev/muster/internal/platform/readcache"
)

const (
	// look is the time between two looks at stacks, and at a resource that is under way.
	look = time.Second
	// patience is how long a call may be refused by something that may pass, such as a network interface in a subnet.
	patience = 5 * time.Minute
	// mostDeleted is how many deleted stacks are kept.
	mostDeleted = 100
	// mostAtOnce is how many calls of one stack are made at once.
	mostAtOnce = 8
)

// runner brings stacks forward.
type runner struct{ *Stacks }

// Watch brings stacks forward until the context ends.
func (s *Stacks) Watch(ctx context.Context) {
	defer s.runs.Wait()
	for {
		if err := (runner{s}).lookAround(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "stacks were not brought forward; they will be", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.begun:
		case <-time.After(look):
		}
	}
}

// lookAround has each stack of which an operation is under way brought forward, and forgets the oldest of those that are deleted.
func (s runner) lookAround(ctx context.Context) error {
	pending, deleted, err := s.store.Pending(readcache.Allow(ctx))
	if err != nil {
		return err
	}
	for _, id := range pending {
		if s.take(id) {
			s.runs.Go(func() {
				defer s.leave(id)
				s.run(ctx, id)
			})
		}
	}
	var errs []error
	for i := range len(deleted) - mostDeleted {
		errs = append(errs, s.store.Forget(ctx, deleted[i]))
	}
	return errors.Join(errs...)
}

// take reports whether nobody brings the stack forward yet.
func (s runner) take(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[id] {
		return false
	}
	s.running[id] = true
	return true
}

// leave ends what take began.
func (s runner) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, id)
	maps.DeleteFunc(s.waiting, func(call string, _ time.Time) bool { return strings.HasPrefix(call, id) })
}

// run brings a stack forward until its operation has ended.
func (s runner) run(ctx context.Context, id string) {
	for ctx.Err() == nil {
		over, moved, err := s.advance(ctx, id)
		if err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "a stack was not brought forward; it will be", "stack", id, "error", err)
		}
		if over {
			return
		}
		if err == nil && moved {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(look):
		}
	}
}

// advance decides what is next of a stack, writes that, and makes the calls that are due. It reports whether the operation is
// over, and whether anything has changed.
func (s runner) advance(ctx context.Context, id string) (over, moved bool, err error) {
	var calls []stack.Call
	r, err := s.store.Get(ctx, id)
	if apierrors.IsNotFound(err) {
		return true, false, nil
	}
	if err != nil {
		return false, false, err
	}
	next, err := s.next(ctx, r)
	if err != nil {
		return false, false, err
	}
	calls = next.Calls
	if len(next.Events) > 0 || !reflect.DeepEqual(next.State, r.State) {
		if r, calls, err = s.write(ctx, id); err != nil {
			return false, false, err
		}
		moved = true
	}
	if !r.State.Status.InProgress() {
		return true, true, nil
	}
	outcomes := s.carry(ctx, r, calls)
	if len(outcomes) == 0 {
		return false, moved, ctx.Err()
	}
	_, err = s.store.Update(ctx, id, func(r *stackrecord.Record) error {
		for _, o := range outcomes {
			var events []stack.Event
			r.State, events = stack.Record(r.State, o)
			r.Tell(s.Now(), s.hide(r, events))
		}
		return nil
	})
	return false, true, err
}

// write writes what is next of a stack, and returns the calls that are due. One stack at a time is written: that the name of
// an export is free, and that it is taken, is one step.
func (s runner) write(ctx context.Context, id string) (written *stackrecord.Record, calls []stack.Call, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	written, err = s.store.Update(ctx, id, func(r *stackrecord.Record) error {
		next, err := s.next(ctx, r)
		if err != nil {
			return err
		}
		calls = next.Calls
		return s.enter(ctx, r, next)
	})
	return written, calls, err
}

// next decides what is next. Nothing is decided where an import cannot be read now.
func (s runner) next(ctx context.Context, r *stackrecord.Record) (stack.Plan, error) {
	place, imported := s.place(ctx, r)
	plan, err := stackplan.Read(r.Asked, place)
	if err != nil {
		return stack.Plan{}, err
	}
	next := stack.Next(r.State, plan.Judge)
	return next, imported.away
}

// enter puts what was decided into a stack, with what a status brings along.
func (s runner) enter(ctx context.Context, r *stackrecord.Record, next stack.Plan) error {
	was := r.State
	r.State = next.State
	done := was.Status == stack.CreateInProgress && r.State.Status == stack.CreateComplete ||
		was.Status == stack.UpdateInProgress && (r.State.Status == stack.UpdateCleanup || r.State.Status == stack.UpdateComplete)
	if done {
		outputs, wrong, err := s.outputs(ctx, r)
		if err != nil {
			return err
		}
		if wrong != "" {
			r.State, next.Events = was.Fail(wrong)
		} else {
			r.Outputs, r.Before = outputs, nil
		}
	}
	r.Tell(s.Now(), s.hide(r, next.Events))
	switch r.State.Status { //nolint:exhaustive // nothing else changes in the others
	case stack.UpdateRollbackComplete:
		if r.Before != nil {
			r.Asked, r.Before = *r.Before, nil
			if plan, err := stackplan.Read(r.Asked, stackplan.Place{}); err == nil {
				r.Description = plan.Template.Description
			}
		}
	case stack.DeleteComplete:
		r.Outputs = nil
	}
	if !r.State.Status.InProgress() {
		r.Operation.Caller = nil // nothing is done for the caller any more
	}
	return nil
}

// secrets are the values of NoEcho parameters of a stack, as it is to be and as it was.
func secrets(r *stackrecord.Record) []string {
	secrets := stackplan.Secrets(r.Asked)
	if r.Before != nil {
		secrets = append(secrets, stackplan.Secrets(*r.Before)...)
	}
	return secrets
}

// hide takes values of NoEcho parameters out of what actions have said.
func (s runner) hide(r *stackrecord.Record, events []stack.Event) []stack.Event {
	secrets := secrets(r)
	if len(secrets) == 0 {
		return events
	}
	hidden := make([]stack.Event, 0, len(events))
	for _, e := range events {
		e.Reason = stackplan.Hide(e.Reason, secrets)
		hidden = append(hidden, e)
	}
	r.State.Reason = stackplan.Hide(r.State.Reason, secrets)
	for i := range r.State.Resources {
		r.State.Resources[i].Reason = stackplan.Hide(r.State.Resources[i].Reason, secrets)
	}
	return hidden
}

// carry makes the calls that are due, and returns the outcomes that change something.
func (s runner) carry(ctx context.Context, r *stackrecord.Record, calls []stack.Call) []stack.Outcome {
	by := s.by(r)
	do := func(ctx context.Context, service, action string, input awsshape.Object) (awsshape.Object, error) {
		return s.Do(ctx, by, service, action, input)
	}
	var mu sync.Mutex
	var all []stack.Outcome
	var group sync.WaitGroup
	free := make(chan struct{}, mostAtOnce)
	for _, call := range calls {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			o := s.bounded(r, provision.Carry(ctx, do, provision.Order{Call: call, StackID: r.ARN, Seed: r.SeedOf(call.Resource.Serial), Operation: r.Operation.ID}))
			if ctx.Err() != nil && o.Result == stack.Failed {
				return // the service ends, and the call is made again by the next one
			}
			if o.Result == stack.Pending && (o.PhysicalID == "" || o.PhysicalID == call.Resource.PhysicalID) && o.Reason == call.Resource.Reason {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, o)
		})
	}
	group.Wait()
	return all
}

// bounded fails a call that has been refused by something that may pass for too long.
func (s runner) bounded(r *stackrecord.Record, o stack.Outcome) stack.Outcome {
	key := fmt.Sprintf("%s %s %d %s", r.ID, r.Operation.ID, o.Serial, o.Work)
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.Result != stack.Pending || o.Reason == "" {
		delete(s.waiting, key)
		return o
	}
	since, ok := s.waiting[key]
	if !ok {
		s.waiting[key] = s.Now()
		return o
	}
	if s.Now().Sub(since) >= patience {
		delete(s.waiting, key)
		o.Result = stack.Failed
	}
	return o
}
