// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/api/v1alpha1"
)

// benchWarm measures how long a node group takes from the request for one more machine to a Node that is Ready: with a
// machine that runs in its warm pool, with a stopped one, and without a pool. They have their
// turns, each with a group of its own.
func benchWarm(ctx context.Context, bin string, rounds int) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--nodes", "1"); err != nil {
		return err
	}
	ways := []struct {
		name, pool string
		warm       int
		times      []time.Duration
	}{
		{name: "running", pool: "{maxGroupPreparedCapacity: 1, poolState: Running}", warm: 1},
		{name: "stopped", pool: "{maxGroupPreparedCapacity: 1, poolState: Stopped}", warm: 1},
		{name: "none", pool: "null"},
	}
	for round := range rounds {
		for i := range ways {
			way := &ways[i]
			took, err := t.grow(ctx, fmt.Sprintf("%s-%d", way.name, round), way.pool, way.warm)
			if err != nil {
				return fmt.Errorf("with a pool of %s: %w", way.name, err)
			}
			way.times = append(way.times, took)
		}
	}
	w := newTable()
	_, _ = fmt.Fprintln(w, "milliseconds, median (min-max)\tone more machine asked for, to Ready\tn\t")
	for _, way := range ways {
		_, _ = fmt.Fprintf(w, "warm pool: %s\t%s\t%d\t\n", way.name, span(way.times), rounds)
	}
	return w.Flush()
}

const warmGroup = `{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {namespace: muster, name: %[1]s}, spec: {name: %[1]s, scalingConfig: {desiredSize: %[2]d, maxSize: 2}, warmPool: %[3]s}}
`

// grow makes a group whose pool is to have some machines, waits for those, asks for one machine, and returns how long it
// took to be Ready. The group goes afterwards.
func (t trial) grow(ctx context.Context, name, pool string, warm int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, launchTimeout)
	defer cancel()
	apply := func(size int) error {
		return t.apply(ctx, fmt.Sprintf(warmGroup, name, size, pool), "--context=muster-management")
	}
	wait := func(is func(v1alpha1.Machine) bool, n int) (found []v1alpha1.Machine, err error) {
		for {
			machines, err := t.machines(ctx)
			if err != nil {
				return nil, err
			}
			found = nil
			for _, m := range machines {
				if m.Labels[v1alpha1.LabelNodeGroup] == name && is(m) {
					found = append(found, m)
				}
			}
			if len(found) == n {
				return found, nil
			}
			if err := pause(ctx, 250*time.Millisecond); err != nil { // seldom enough not to be in the way
				return nil, fmt.Errorf("waiting for %d machines of group %s: %w", n, name, err)
			}
		}
	}
	if err := apply(0); err != nil {
		return 0, err
	}
	prepared := func(m v1alpha1.Machine) bool {
		return m.Status.Phase == v1alpha1.MachineWarmRunning || m.Status.Phase == v1alpha1.MachineWarmStopped
	}
	if _, err := wait(prepared, warm); err != nil {
		return 0, err
	}
	if err := pause(ctx, 2*time.Second); err != nil { // until what made it is quiet
		return 0, err
	}
	began := time.Now()
	if _, err := t.mustKubectl(ctx, "--context=muster-management", "-n", "muster", "scale", "nodegroups.muster.dev/"+name, "--replicas=1"); err != nil {
		return 0, err
	}
	ready, err := wait(func(m v1alpha1.Machine) bool { return !steps(m)[v1alpha1.StepReady].IsZero() }, 1)
	if err != nil {
		return 0, err
	}
	_, err = t.muster(ctx, "delete", "nodegroup", name)
	return steps(ready[0])[v1alpha1.StepReady].Sub(began), err
}
