// SPDX-License-Identifier: Apache-2.0

package scalingplan

import (
	"cmp"
	"slices"

	"muster.dev/muster/api/v1alpha1"
)

// refresh ends outdated instances as far as enough others are healthy, the oldest first, and returns the capacity that the
// group is to have meanwhile: more than desired if instances are launched before others go, and never more than the maximum.
func (p *planner) refresh() int {
	r := p.g.Refresh
	if r == nil || p.g.suspends(v1alpha1.ProcessInstanceRefresh, v1alpha1.ProcessLaunch, v1alpha1.ProcessTerminate) {
		return p.g.Desired
	}
	healthy, left := 0, 0
	var outdated []*Instance
	for k := range p.all {
		i := &p.all[k]
		switch {
		case !i.Counts():
			continue
		case i.State == v1alpha1.LifecycleInService && i.Machine == Running && (i.Outdated || p.now.Sub(i.Since) >= r.Warmup):
			healthy += i.Type.Weight
		}
		if i.Outdated && (r.Protected || !i.Protected) {
			outdated = append(outdated, i)
			left += i.Type.Weight
		}
	}
	slices.SortFunc(outdated, func(a, b *Instance) int {
		return cmp.Or(a.Launched.Compare(b.Launched), cmp.Compare(a.ID, b.ID))
	})
	_, _, launches := p.place(p.g.Max, "")
	for _, i := range outdated {
		counted := i.State == v1alpha1.LifecycleInService && i.Machine == Running
		if !launches || counted && healthy-i.Type.Weight < p.floor(i.Type.Weight) {
			break
		}
		if counted {
			healthy -= i.Type.Weight
		}
		left -= i.Type.Weight
		p.end(i, refreshed(p.now))
	}
	spare := 0
	if r.MaxHealthy > 100 && left > 0 {
		spare = min(max(1, p.g.Desired*r.MaxHealthy/100-p.g.Desired), left)
	}
	return min(p.g.Desired+spare, p.g.Max)
}

// floor is the capacity that stays healthy. Below 100 percent one instance may always go, as on AWS.
func (p *planner) floor(weight int) int {
	least := (p.g.Desired*p.g.Refresh.MinHealthy + 99) / 100
	if p.g.Refresh.MinHealthy < 100 {
		least = min(least, p.g.Desired-weight)
	}
	return least
}
