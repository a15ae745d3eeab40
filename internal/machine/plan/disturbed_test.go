// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/machine/plan"
)

// disturb has somebody or something interfere with a rollout: a machine dies or comes back, is stopped and started, or is
// deleted, the group is scaled, another rollout begins, or its policy changes.
func (r *rollout) disturb(t *rapid.T) {
	if len(r.machines) == 0 {
		return
	}
	m := &r.machines[rapid.IntRange(0, len(r.machines)-1).Draw(t, "whom")]
	switch rapid.SampledFrom([]string{"dies", "comes back", "is stopped", "is started", "is deleted", "scaled", "another", "policy", "forgets"}).Draw(t, "what") {
	case "dies":
		m.Ready = false
	case "comes back":
		m.Ready = m.Joined && !m.Stopped
	case "is stopped":
		m.Stopped, m.Ready = true, false
	case "is started":
		m.Stopped = false
	case "is deleted":
		m.Deleting = true
	case "scaled":
		r.desired = rapid.IntRange(0, 6).Draw(t, "desired")
	case "another": // the outcome of drains is still said of machines
		r.phase = ""
		for i := range r.machines {
			r.machines[i].Outdated, r.machines[i].Drains, r.machines[i].Draining = true, r.machines[i].Draining, false
		}
	case "policy":
		r.policy = policies(t)
	case "forgets":
		r.forget()
	}
}

// forget has machines give up what earlier rollouts had them do.
func (r *rollout) forget() {
	for i := range r.machines {
		if m := &r.machines[i]; m.Drains && !m.Draining {
			m.Drains, m.Drained, m.TimedOut = false, false, false
		}
	}
}

// Whatever happens to its machines meanwhile, a rollout chooses no more of them than may be unavailable, none that serves
// while too few would, none because of what an earlier rollout said of it, and ends when it is left alone.
func TestRolloutThatIsDisturbed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &rollout{desired: rapid.IntRange(1, 6).Draw(t, "desired"), policy: policies(t)}
		for i := range r.desired {
			r.machines = append(r.machines, plan.Machine{Name: fmt.Sprintf("old-%d", i), Created: at(i), Joined: true, Ready: true, Outdated: true})
		}
		for left := rapid.IntRange(0, 60).Draw(t, "disturbances"); ; left-- {
			if left > 0 {
				r.disturb(t)
			} else {
				r.forget()
			}
			before := map[string]plan.Machine{}
			for _, m := range r.machines {
				before[m.Name] = m
			}
			stays := r.stays()
			_, done := r.turn(t)
			serving, _ := r.serve()
			for _, m := range r.machines {
				was := before[m.Name]
				if m.Draining && !was.Draining && was.Drains {
					t.Fatalf("%s is chosen for what an earlier rollout said of it: %+v", m.Name, was)
				}
				if least := r.desired - stays; m.Draining && !was.Draining && was.Ready && !r.policy.Minimal && serving < least {
					t.Fatalf("%s is chosen, and %d of %d serve", m.Name, serving, least)
				}
			}
			if done && left <= 0 {
				return
			}
			if left < -1000 {
				t.Fatalf("it does not end: %d desired, %+v, %+v", r.desired, r.policy, r.machines)
			}
			r.lives(t)
		}
	})
}

// stays counts machines that are stopped, and not replaced.
func (r *rollout) stays() (n int) {
	for _, m := range r.machines {
		if m.Stopped && !m.Outdated && !m.Deleting {
			n++
		}
	}
	return n
}
