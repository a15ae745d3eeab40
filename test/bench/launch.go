// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
)

// launchTimeout is how long a machine may take.
const launchTimeout = 2 * time.Minute

// benchLaunch measures machines from being launched to Ready: those that join by their role, and those that join by a
// bootstrap token, in turns in one cluster, the order reversed every other round.
func benchLaunch(ctx context.Context, bin string, rounds int) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--nodes", "0"); err != nil {
		return err
	}
	ways := []v1alpha1.Bootstrap{v1alpha1.BootstrapRole, v1alpha1.BootstrapToken}
	for _, way := range ways { // steps that are only done once, such as making the role, are not measured
		if _, err := t.launch(ctx, way, "first"); err != nil {
			return err
		}
	}
	times := map[v1alpha1.Bootstrap]*launchTimes{}
	for round := range rounds {
		for _, way := range ways {
			at, err := t.launch(ctx, way, fmt.Sprint(round))
			if err != nil {
				return fmt.Errorf("by %s: %w", way, err)
			}
			if times[way] == nil {
				times[way] = &launchTimes{}
			}
			times[way].add(at)
		}
		slices.Reverse(ways)
	}
	role, token := times[v1alpha1.BootstrapRole], times[v1alpha1.BootstrapToken]
	w := newTable()
	_, _ = fmt.Fprintln(w, "milliseconds, median (min-max)\tlaunched to first request\tfirst request to Ready\tlaunched to Ready\tn\t")
	_, _ = fmt.Fprintf(w, "by role\t%s\t%s\t%s\t%d\t\n", span(role.request), span(role.rest), span(role.whole), rounds)
	_, _ = fmt.Fprintf(w, "by bootstrap token\t%s\t%s\t%s\t%d\t\n", span(token.request), span(token.rest), span(token.whole), rounds)
	_, _ = fmt.Fprintf(w, "by role as multiple of by token\t%.2f\t%.2f\t%.2f\t\t\n",
		ratio(role.request, token.request), ratio(role.rest, token.rest), ratio(role.whole, token.whole))
	return w.Flush()
}

// launchTimes are until the machine's first request, from there to Ready, and both.
type launchTimes struct{ request, rest, whole []time.Duration }

func (l *launchTimes) add(at map[v1alpha1.JoinStep]time.Time) {
	launched, request, ready := at[v1alpha1.StepLaunched], at[v1alpha1.StepAPIReached], at[v1alpha1.StepReady]
	l.request = append(l.request, request.Sub(launched))
	l.rest = append(l.rest, ready.Sub(request))
	l.whole = append(l.whole, ready.Sub(launched))
}

// launch makes a group of one machine, waits for it to be Ready, removes the group, and tells when the machine took
// which step.
func (t trial) launch(ctx context.Context, way v1alpha1.Bootstrap, name string) (map[v1alpha1.JoinStep]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, launchTimeout)
	defer cancel()
	name = map[v1alpha1.Bootstrap]string{v1alpha1.BootstrapRole: "role-", v1alpha1.BootstrapToken: "token-"}[way] + name
	if err := t.apply(ctx, fmt.Sprintf(launchGroup, name, way), "--context=muster-management"); err != nil {
		return nil, err
	}
	for {
		machines, err := t.machines(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range machines {
			if at := steps(m); m.Labels[v1alpha1.LabelNodeGroup] == name && !at[v1alpha1.StepReady].IsZero() {
				_, err := t.muster(ctx, "delete", "nodegroup", name)
				return at, err
			}
		}
		select {
		case <-time.After(250 * time.Millisecond): // seldom enough not to be in the way
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the machine of group %s: %w", name, context.Cause(ctx))
		}
	}
}

const launchGroup = `{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {namespace: muster, name: %[1]s}, spec: {name: %[1]s, bootstrap: %[2]s, scalingConfig: {desiredSize: 1}}}
`
