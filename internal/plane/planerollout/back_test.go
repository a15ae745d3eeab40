// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/release"
)

// of has the plane be of a minor.
func (p *plane) of(minor string) {
	p.t.Helper()
	found, err := release.All().OfMinor(minor)
	if err != nil {
		p.t.Fatal(err)
	}
	p.config.Release = found
}

// turn runs the plane until what is wanted is done, and says what ended meanwhile.
func (p *plane) turn() (refusal *Refusal, ends []string) {
	p.t.Helper()
	ctx, end := context.WithCancel(p.t.Context())
	defer end()
	before := len(p.place.Ends())
	refusal, running, err := p.service(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, name := range []string{component.ControllerManager, component.Scheduler} {
		if err := running.WaitReady(ctx, name); err != nil {
			p.t.Fatal(err)
		}
	}
	for _, process := range p.place.Ends()[before:] {
		ends = append(ends, strings.TrimPrefix(process, "cluster/blue/"))
	}
	return refusal, ends
}

// On the way up the API server is replaced first and its followers come after it; on the way back they go first.
func TestUpAndBack(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	began := time.Now()
	for _, want := range []struct {
		minor, first, last string
		move               *Move
	}{
		{"1.36", "", "", nil},
		{"1.37", "kube-apiserver", "kube-scheduler", &Move{From: "1.36", To: "1.37"}},
		{"1.36", "kube-controller-manager", "kube-apiserver-1", &Move{From: "1.37", To: "1.36"}},
		{"1.36", "", "", &Move{From: "1.37", To: "1.36"}},
	} {
		p.of(want.minor)
		refusal, ends := p.turn()
		if refusal != nil {
			t.Fatal(refusal)
		}
		if want.first == "" && len(ends) > 0 || want.first != "" && (len(ends) != 3 || !slices.Contains(ends[:2], want.first) || !slices.Contains(ends[1:], want.last)) {
			t.Errorf("to %s: %v ended", want.minor, ends)
		}
		record, err := read(p.config.Dir.PlaneRecord())
		if err != nil {
			t.Fatal(err)
		}
		switch is := record.Move; {
		case record.Before != nil, (is == nil) != (want.move == nil):
			t.Errorf("%+v, %+v", is, record.Before)
		case is != nil && (is.From != want.move.From || is.To != want.move.To || is.At.Before(began) || is.At.After(time.Now())):
			t.Errorf("%+v", is)
		}
	}
}

// A rollback whose API server does not become Ready ends nothing, and a rollback whose scheduler does not start gives the
// followers back what they were.
func TestBackIsRefused(t *testing.T) {
	t.Parallel()
	for broken, want := range map[string]string{component.APIServer: "it ended 3 times", component.Scheduler: "kube-scheduler of 1.36 did not serve: it ended 3 times"} {
		t.Run(broken, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t)
			for _, minor := range []string{"1.36", "1.37"} {
				p.of(minor)
				if refusal, _ := p.turn(); refusal != nil {
					t.Fatal(refusal)
				}
			}
			before, err := read(p.config.Dir.PlaneRecord())
			if err != nil {
				t.Fatal(err)
			}
			p.of("1.36")
			ctx, end := context.WithTimeout(t.Context(), 30*time.Second)
			defer end()
			r := p.rollout(p.place.New(ctx))
			if err := r.Begin(ctx); err != nil {
				t.Fatal(err)
			}
			r.config.Runner = failing{r.config.Runner, broken}
			outcome, err := r.Run(ctx)
			if err != nil || outcome.Refusal == nil || !strings.Contains(outcome.Refusal.Reason, want) {
				t.Fatalf("%+v, %v", outcome.Refusal, err)
			}
			after, err := read(p.config.Dir.PlaneRecord())
			if err != nil {
				t.Fatal(err)
			}
			for i, spec := range after.Followers {
				if spec.Hash() != before.Followers[i].Hash() {
					t.Errorf("%s is %s", spec.Name, spec.Path)
				}
			}
			if len(after.Servers) != 1 || after.Servers[0].Slot != 1 || after.Before != nil || *after.Move != *before.Move || p.told() != "20002" {
				t.Errorf("%+v; the front knows %s", after, p.told())
			}
		})
	}
}
