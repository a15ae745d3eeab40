// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/platform/readcache"
)

const (
	// stateLook is the time between two looks at the states of instances.
	stateLook = time.Second
	// terminated is the state of an instance that is not there any more.
	terminated = "terminated"
	// maxTries is how often an event of an instance is sent while a queue cannot be read or written. Queues that can be
	// written get it each time.
	maxTries = 5
)

// notified is the record of what rules were told, by instance: the states, and what was announced.
type notified struct {
	States    map[string]string `json:"states"`
	Announced map[string]string `json:"announced,omitempty"`
}

var states = awsrecord.Kind[notified]{Type: "events-states"}

// change is a state that an instance has and had not.
type change struct{ id, state string }

// changes are the differences between two looks, by instance. An instance that is gone is terminated.
func changes(before, now map[string]string) []change {
	var all []change
	for id, state := range now {
		if before[id] != state {
			all = append(all, change{id, state})
		}
	}
	for id := range before {
		if _, there := now[id]; !there {
			all = append(all, change{id, terminated})
		}
	}
	slices.SortFunc(all, func(x, y change) int { return cmp.Compare(x.id, y.id) })
	return all
}

// Watch sends the state changes of instances until the context ends. It looks at instances only while a rule could match
// them. The states that were sent are recorded, so that a change during an outage of the service is sent after it.
func (b *Bus) Watch(ctx context.Context) {
	for {
		if err := b.look(ctx); err != nil && ctx.Err() == nil {
			b.Log.Warn("state changes of instances were not sent; they will be", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(stateLook):
		}
	}
}

// look sends what changed since the last look.
func (b *Bus) look(ctx context.Context) error {
	cached := readcache.Allow(ctx)
	all, err := rules.List(cached, b.Management)
	if err != nil {
		return err
	}
	told, err := states.Get(cached, b.Management, states.NameOf(b.AccountID))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading which states rules were told: %w", err)
	}
	wanted := slices.ContainsFunc(all, func(r record) bool { return r.Data.State == enabled && len(r.Data.Targets) > 0 })
	switch {
	case !wanted && told == nil:
		return nil
	case !wanted: // a rule that comes later is not told of what was before it
		return states.Delete(ctx, b.Management, told.ID)
	}
	var machines v1alpha1.MachineList
	if err := b.Management.List(cached, &machines); err != nil {
		return fmt.Errorf("listing instances: %w", err)
	}
	now, zones, drills := notified{map[string]string{}, map[string]string{}}, map[string]string{}, map[string]*v1alpha1.MachineDrill{}
	for i := range machines.Items {
		m := &machines.Items[i]
		if m.Spec.Fargate != nil { // no instance of EC2's
			continue
		}
		now.States[m.Name] = b.State(m)
		if drills[m.Name] = announces(m); drills[m.Name] != nil {
			now.Announced[m.Name] = drills[m.Name].Began.UTC().Format(time.RFC3339Nano)
		}
		zones[m.Name], _, _ = strings.Cut(strings.TrimPrefix(m.Status.ProviderID, "aws:///"), "/")
	}
	if told == nil {
		r := &awsrecord.Record[notified]{ID: states.NameOf(b.AccountID), Name: b.AccountID, Data: now}
		return states.Create(ctx, b.Management, r)
	}
	news := b.news(told.Data, now, drills, func(id string) Instance { return Instance{id, zones[id], b.Region, b.AccountID} })
	if len(news) == 0 && maps.Equal(told.Data.Announced, now.Announced) {
		return nil
	}
	unsent := b.emitAll(ctx, news, told.Data, now)
	_, err = states.Update(ctx, b.Management, told.ID, func(r *awsrecord.Record[notified]) error { r.Data = now; return nil })
	return errors.Join(unsent, err)
}

// emitAll sends events, each of them whatever becomes of the others. In now, which is what will be noted as sent, an event
// that was not sent stays as it was before, until it was tried often enough.
func (b *Bus) emitAll(ctx context.Context, all []notice, before, now notified) error {
	var errs []error
	failed := map[string]int{}
	for _, n := range all {
		err := b.Emit(ctx, n.Event)
		if err == nil {
			continue
		}
		errs = append(errs, err)
		if tries := b.failed[n.key()] + 1; tries < maxTries {
			failed[n.key()] = tries
			n.forget(before, now)
			continue
		}
		b.Log.Error("an event was dropped: it could not be sent to all queues", "instance", n.id, "event", n.DetailType, "tries", maxTries, "error", err)
	}
	b.failed = failed
	return errors.Join(errs...)
}

// announces returns the drill of a machine that goes on and that EC2 would tell of before it happens; nil if there is none.
func announces(m *v1alpha1.Machine) *v1alpha1.MachineDrill {
	for _, kind := range []v1alpha1.DrillKind{v1alpha1.DrillSpotInterruption, v1alpha1.DrillRebalance, v1alpha1.DrillMaintenance} {
		if d := m.Spec.Drill; d != nil && d.Kind == kind && m.Status.Drill.Goes(kind) && m.Status.Drill.Began.Equal(&d.Began) {
			return d
		}
	}
	return nil
}

// notice is an event of an instance.
type notice struct {
	id        string
	announces bool // it is of a drill, and else of a state
	Event
}

func (n notice) key() string { return n.id + " " + n.DetailType }

// forget has a look find the event again.
func (n notice) forget(before, now notified) {
	was, is := before.States, now.States
	if n.announces {
		was, is = before.Announced, now.Announced
	}
	if old, had := was[n.id]; had {
		is[n.id] = old
	} else {
		delete(is, n.id)
	}
}

// news are the events about what differs between two looks: announcements first, since an instance that is announced may
// end soon.
func (b *Bus) news(before, now notified, drills map[string]*v1alpha1.MachineDrill, instance func(id string) Instance) []notice {
	var all []notice
	for _, id := range slices.Sorted(maps.Keys(now.Announced)) {
		if before.Announced[id] != now.Announced[id] {
			all = append(all, notice{id, true, announcement(instance(id), *drills[id], b.Now())})
		}
	}
	for _, c := range changes(before.States, now.States) {
		all = append(all, notice{c.id, false, StateChange(instance(c.id), c.state, b.Now())})
	}
	return all
}

// announcement is the event about a drill that announces something.
func announcement(i Instance, d v1alpha1.MachineDrill, now time.Time) Event {
	switch d.Kind {
	case v1alpha1.DrillSpotInterruption:
		return SpotInterruption(i, now)
	case v1alpha1.DrillRebalance:
		return Rebalance(i, now)
	default:
		return ScheduledChange(i, d.Ends.Time, now)
	}
}
