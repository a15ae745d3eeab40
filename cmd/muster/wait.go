// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// waitInterval is how often a waiting command looks.
const waitInterval = 300 * time.Millisecond

// waitConfig says which node group to wait for and how long.
type waitConfig struct {
	group             string
	timeout, interval time.Duration
}

// poll calls done until it says so, its error is not a plane's silence, or the time is up. An API server that restarts meanwhile does not
// end the waiting.
func poll(ctx context.Context, timeout, interval time.Duration, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeUp)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		ok, err := done(ctx)
		var fatal fatalError
		if ok || errors.As(err, &fatal) {
			return err
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, errTimeUp) {
				return errors.New("interrupted")
			}
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("%w after %s: %w", errTimeUp, timeout, err)
			}
			return fmt.Errorf("%w after %s", errTimeUp, timeout)
		case <-ticker.C:
		}
	}
}

const errTimeUp = timeUp("gave up")

// timeUp is a kind of error that there is one of.
type timeUp string

func (e timeUp) Error() string { return string(e) }

// fatalError ends polling.
type fatalError struct{ error }

// waitForNodes returns when as many nodes of a group are Ready as it is to have.
func waitForNodes(ctx context.Context, talk io.Writer, p *plane, cfg waitConfig) error {
	progress := &waitProgress{out: talk, live: terminal(talk)}
	defer progress.end()
	state := ""
	err := poll(ctx, cfg.timeout, cfg.interval, func(ctx context.Context) (bool, error) {
		var list v1alpha1.NodeGroupList
		if err := p.list(ctx, &list); err != nil {
			return false, err
		}
		for i := range list.Items {
			g := &list.Items[i]
			if g.Name != cfg.group {
				continue
			}
			want := g.Spec.ScalingConfig.DesiredSize
			state = fmt.Sprintf("nodegroup %s: %d of %s Ready", g.Name, g.Status.ReadyReplicas, count(want, "node is", "nodes are"))
			if g.Status.Replicas > want {
				state += ", " + count(g.Status.Replicas-want, "machine", "machines") + " too many"
			}
			state += because(obstacle(g))
			progress.show(state)
			return g.Status.ObservedGeneration >= g.Generation && g.Status.Replicas == want && g.Status.ReadyReplicas == want, nil
		}
		return false, fatalError{fmt.Errorf("nodegroup %q is gone", cfg.group)}
	})
	if errors.Is(err, errTimeUp) {
		progress.end()
		return fmt.Errorf("%s: %w%s", or(state, "nodegroup "+cfg.group), err, p.stragglers(ctx, cfg.group))
	}
	return err
}

// obstacle is what keeps a group from getting on, other than time: a role that is not there, user data that cannot be read.
func obstacle(g *v1alpha1.NodeGroup) string {
	ready := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.ObservedGeneration != g.Generation || slices.Contains([]string{"Ready", "Scaling", "Joining", "Deleting"}, ready.Reason) {
		return ""
	}
	return ready.Message
}

// stragglers says of machines of a group that are not Ready how far they have come.
func (p *plane) stragglers(ctx context.Context, group string) string {
	var list v1alpha1.MachineList
	if err := p.list(ctx, &list); err != nil {
		return ""
	}
	const most = 5
	var lines []string
	for i := range list.Items {
		m := &list.Items[i]
		if m.Spec.NodeGroup != group || m.Status.Phase == v1alpha1.MachineReady {
			continue
		}
		if len(lines) == most {
			lines = append(lines, "\n  and others: muster get machines")
			break
		}
		step := "it was never launched"
		if n := len(m.Status.Join); n > 0 {
			step = "last step: " + string(m.Status.Join[n-1].Step)
		}
		lines = append(lines, fmt.Sprintf("\n  %s is %s; %s%s; more: muster logs %s", m.Name, or(string(m.Status.Phase), string(v1alpha1.MachinePending)), step, keptFrom(m), m.Name))
	}
	return strings.Join(lines, "")
}

// keptFrom is what keeps a machine from getting on, other than time: that it is refused, or what its pods wait for.
func keptFrom(m *v1alpha1.Machine) string {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || slices.Contains([]string{"Joining", "NodeNotReady", "Late", "Terminating"}, ready.Reason) {
		return ""
	}
	return "; " + ready.Message
}

// waitProgress tells what a command waits for: on a terminal in one line that changes, elsewhere in a line for each change.
type waitProgress struct {
	out  io.Writer
	live bool
	last string
}

// show replaces the text. That it cannot be shown is no reason to stop.
func (p *waitProgress) show(text string) {
	switch {
	case text == p.last:
	case p.live:
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", text)
	default:
		_, _ = fmt.Fprintln(p.out, text)
	}
	p.last = text
}

// end leaves the last text standing.
func (p *waitProgress) end() {
	if p.live && p.last != "" {
		_, _ = fmt.Fprintln(p.out)
	}
	p.last = ""
}
