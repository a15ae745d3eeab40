// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"muster.dev/muster/api/v1alpha1"
)

const (
	// scaleMachines are the machines of a round of benchScale.
	scaleMachines = 10
	// scaleTimeout is how long a round may take.
	scaleTimeout = 5 * time.Minute
)

// benchScale measures how long after `muster scale nodegroup` began each of ten local machines of a group that had none
// is Ready, and how long it takes until they are all gone again.
func benchScale(ctx context.Context, bin string, rounds int) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--nodes", "0"); err != nil {
		return err
	}
	var each, last, gone []time.Duration
	for range rounds {
		began := time.Now()
		ready, err := t.scale(ctx, scaleMachines)
		if err != nil {
			return err
		}
		for _, at := range ready {
			each = append(each, at.Sub(began))
		}
		last = append(last, quantile(each[len(each)-scaleMachines:], 100))
		began = time.Now()
		if _, err := t.scale(ctx, 0); err != nil {
			return err
		}
		gone = append(gone, time.Since(began))
	}
	w := newTable()
	_, _ = fmt.Fprintf(w, "0 to %d local machines\tp50\tp99\tn\t\n", scaleMachines)
	for _, row := range []struct {
		what string
		took []time.Duration
	}{{"a machine is Ready", each}, {"the last one is Ready", last}, {"all are gone again", gone}} {
		_, _ = fmt.Fprintf(w, "%s, s\t%.1f\t%.1f\t%d\t\n", row.what, quantile(row.took, 50).Seconds(), quantile(row.took, 99).Seconds(), len(row.took))
	}
	return w.Flush()
}

// scale scales the node group, waits until it has that many machines, all Ready, and returns when each became Ready.
func (t trial) scale(ctx context.Context, to int) (ready []time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, scaleTimeout)
	defer cancel()
	if _, err := t.muster(ctx, "scale", "nodegroup", "default", strconv.Itoa(to), "--max", strconv.Itoa(scaleMachines)); err != nil {
		return nil, err
	}
	for {
		machines, err := t.machines(ctx)
		if err != nil {
			return nil, err
		}
		ready = ready[:0]
		for _, m := range machines {
			if at := steps(m)[v1alpha1.StepReady]; !at.IsZero() {
				ready = append(ready, at)
			}
		}
		if len(machines) == to && len(ready) == to {
			return ready, nil
		}
		select {
		case <-time.After(250 * time.Millisecond): // seldom enough not to be in the way
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %d machines: %w", to, context.Cause(ctx))
		}
	}
}
