// SPDX-License-Identifier: Apache-2.0

package scalingplan

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
)

// planner gathers actions; all has the instances as they are after these.
type planner struct {
	g       Group
	now     time.Time
	all     []Instance
	actions []Action
	// lost is how many instances went by themselves or for their health, and are not replaced yet.
	lost int
}

// Next returns what to do next. Nothing is to be done if it is empty, until the instances change or a hook's time is up.
func Next(g Group, all []Instance, now time.Time) []Action {
	p := &planner{g: g, now: now, all: slices.Clone(all)}
	slices.SortFunc(p.all, func(a, b Instance) int { return cmp.Compare(a.ID, b.ID) })
	for i := range p.all {
		p.advance(&p.all[i])
	}
	if g.Deleting {
		for i := range p.all {
			if one := &p.all[i]; one.State != v1alpha1.LifecycleTerminating && one.Machine != Gone { // also one that a hook holds
				p.end(one, deleted(now))
			}
		}
		return p.actions
	}
	p.replaceUnhealthy()
	target := p.refresh()
	switch have := Capacity(p.all); {
	case have < target:
		p.grow(target)
	case have > target:
		p.shrink(target)
	default:
		p.rebalance()
	}
	return p.actions
}

// Wake returns when the next hook's time is up; the zero time if no hook holds an instance.
func Wake(all []Instance) time.Time {
	var soonest time.Time
	for _, i := range all {
		for _, a := range i.Actions {
			if until := limit(a); a.Result == "" && (soonest.IsZero() || until.Before(soonest)) {
				soonest = until
			}
		}
	}
	return soonest
}

func ends(s v1alpha1.LifecycleState) bool {
	return s == v1alpha1.LifecycleTerminating || s == v1alpha1.LifecycleTerminatingWait
}

func (p *planner) do(a Action) { p.actions = append(p.actions, a) }

func (p *planner) move(i *Instance, to v1alpha1.LifecycleState, cause string) {
	i.State, i.Since, i.Actions = to, p.now, nil
	p.do(Action{Kind: Move, Instance: i.ID, State: to, Cause: cause})
}

// end begins an instance's end: its hooks hold it first, if there are any and there is something to hold.
func (p *planner) end(i *Instance, cause string) {
	if p.g.HoldsTermination && !p.g.Deleting && i.Machine != Requested {
		p.move(i, v1alpha1.LifecycleTerminatingWait, cause)
		return
	}
	i.State = v1alpha1.LifecycleTerminating
	p.do(Action{Kind: End, Instance: i.ID, Cause: cause})
}

// advance moves an instance along its life.
func (p *planner) advance(i *Instance) {
	switch {
	case i.Machine == Gone:
		if !ends(i.State) && i.State != v1alpha1.LifecycleStandby && i.Wish != v1alpha1.WishDetached {
			p.lost++
		}
		p.do(Action{Kind: Forget, Instance: i.ID, Cause: at(p.now) + " the instance is gone."})
		return
	case i.Machine == Ending:
		if i.State != v1alpha1.LifecycleTerminating {
			if i.Counts() || i.State == v1alpha1.LifecycleInService {
				p.lost++
			}
			p.move(i, v1alpha1.LifecycleTerminating, stopped(p.now))
		}
		return
	case i.State == v1alpha1.LifecycleTerminating: // the service was killed before the Machine was deleted
		p.do(Action{Kind: End, Instance: i.ID, Cause: at(p.now) + " the termination of the instance goes on."})
		return
	case i.Wish == v1alpha1.WishTerminated && !ends(i.State):
		p.end(i, cmp.Or(i.WishCause, unhealthy(p.now)))
		return
	case i.Wish == v1alpha1.WishDetached && !ends(i.State) && i.Machine != Requested:
		p.do(Action{Kind: Leave, Instance: i.ID, Cause: i.WishCause})
		i.Machine = Gone
		return
	}
	p.proceed(i)
}

// proceed moves an instance on that nobody asked to go.
func (p *planner) proceed(i *Instance) {
	switch i.State { //nolint:exhaustive // an end goes on in advance
	case v1alpha1.LifecyclePending:
		if i.Machine == Running {
			p.arrive(i)
		}
	case v1alpha1.LifecyclePendingWait:
		if done, hook := decided(i.Actions, p.now); done && hook != "" {
			p.end(i, abandoned(p.now, hook))
			p.lost++
		} else if done {
			p.move(i, v1alpha1.LifecycleInService, at(p.now)+" the lifecycle actions of the launch were completed.")
		}
	case v1alpha1.LifecycleInService:
		if i.Wish == v1alpha1.WishStandby {
			p.move(i, v1alpha1.LifecycleStandby, i.WishCause)
		}
	case v1alpha1.LifecycleStandby:
		if i.Wish != v1alpha1.WishStandby && (i.Machine == Running || i.Machine == Stopped) { // a stopped instance is replaced, or left alone
			p.arrive(i)
		}
	case v1alpha1.LifecycleTerminatingWait:
		if done, _ := decided(i.Actions, p.now); done {
			i.State = v1alpha1.LifecycleTerminating
			p.do(Action{Kind: End, Instance: i.ID, Cause: at(p.now) + " the lifecycle actions of the termination were completed."})
		}
	}
}

// arrive has an instance that runs be in service, or be held by the hooks of the launch.
func (p *planner) arrive(i *Instance) {
	if p.g.HoldsLaunch {
		p.move(i, v1alpha1.LifecyclePendingWait, at(p.now)+" the instance runs, and lifecycle hooks hold it.")
		return
	}
	p.move(i, v1alpha1.LifecycleInService, at(p.now)+" the instance runs.")
}

// decided reports whether the actions of an instance are over, and which hook's was abandoned, if any.
func decided(actions []v1alpha1.LifecycleAction, now time.Time) (done bool, hook string) {
	done = true
	for _, a := range actions {
		result := a.Result
		if result == "" && !now.Before(limit(a)) {
			result = a.DefaultResult
		}
		switch result {
		case v1alpha1.LifecycleAbandon:
			return true, a.Hook
		case v1alpha1.LifecycleContinue:
		default:
			done = false
		}
	}
	return done, ""
}

// limit is when an action ends by itself.
func limit(a v1alpha1.LifecycleAction) time.Time {
	if a.Last.Time.Before(a.Deadline.Time) {
		return a.Last.Time
	}
	return a.Deadline.Time
}

// replaceUnhealthy ends instances that do not run, and those of which somebody said that they are unhealthy.
func (p *planner) replaceUnhealthy() {
	if p.g.suspends(v1alpha1.ProcessReplaceUnhealthy, v1alpha1.ProcessTerminate) {
		return
	}
	for k := range p.all {
		i := &p.all[k]
		switch {
		case !i.Counts():
		case i.Wish == v1alpha1.WishUnhealthy:
			p.end(i, unhealthy(p.now))
			p.lost++
		case i.Machine == Stopped && !p.g.suspends(v1alpha1.ProcessHealthCheck):
			p.end(i, stopped(p.now))
			p.lost++
		}
	}
}
