// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/statedir"
)

// trial is one state directory with a cluster in it.
type trial struct {
	bin, dir string
}

func newTrial(ctx context.Context, bin string) (trial, func(), error) {
	dir, err := os.MkdirTemp("", "mb-")
	if err != nil {
		return trial{}, nil, err
	}
	t := trial{bin, dir}
	return t, func() {
		_, _ = t.muster(context.WithoutCancel(ctx), "down", "--delete") // after an interrupt too
		_ = os.RemoveAll(dir)
	}, nil
}

func (t trial) state() statedir.Dir { return statedir.Dir(filepath.Join(t.dir, "state")) }

func (t trial) environ() []string {
	return append(os.Environ(), statedir.Env+"="+string(t.state()), "KUBECONFIG="+filepath.Join(t.dir, "kubeconfig"))
}

func (t trial) muster(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(t.bin, "muster"), args...)
	cmd.Env = t.environ()
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("muster %s: %w\n%s", strings.Join(args, " "), err, talk.String())
	}
	return out.Bytes(), nil
}

// apply gives a manifest to kubectl, with arguments such as the context.
func (t trial) apply(ctx context.Context, manifest string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(t.bin, "kubectl"), append(args, "apply", "-f", "-")...)
	cmd.Env, cmd.Stdin = t.environ(), strings.NewReader(manifest)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("applying a manifest: %w: %s", err, out)
	}
	return nil
}

func (t trial) machines(ctx context.Context) ([]v1alpha1.Machine, error) {
	out, err := t.muster(ctx, "get", "machines", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list v1alpha1.MachineList
	return list.Items, json.Unmarshal(out, &list)
}

// benchUp measures `muster up` with three local machines.
func benchUp(ctx context.Context, bin string, rounds int) error {
	walls := map[string][]time.Duration{}
	var last *memory
	for range rounds {
		if err := func() error {
			t, remove, err := newTrial(ctx, bin)
			if err != nil {
				return err
			}
			defer remove()
			started := time.Now()
			if _, err := t.muster(ctx, "up"); err != nil {
				return err
			}
			walls["1 muster up: nothing to 3 Ready nodes"] = append(walls["1 muster up: nothing to 3 Ready nodes"], time.Since(started))
			machines, err := t.machines(ctx)
			if err != nil {
				return err
			}
			for _, m := range machines {
				at := steps(m)
				for name, between := range map[string][2]v1alpha1.JoinStep{
					"2 machine: launched to Ready":                 {v1alpha1.StepLaunched, v1alpha1.StepReady},
					"3 machine: launched to API reached":           {v1alpha1.StepLaunched, v1alpha1.StepAPIReached},
					"4 certificate: serving CSR created to issued": {v1alpha1.StepServingCSRCreated, v1alpha1.StepServingCSRIssued},
					"5 kubelet: API reached to Ready":              {v1alpha1.StepAPIReached, v1alpha1.StepReady},
				} {
					from, until := at[between[0]], at[between[1]]
					if !from.IsZero() && !until.IsZero() { // the serving certificate may come after the node is Ready
						walls[name] = append(walls[name], until.Sub(from))
					}
				}
			}
			again := time.Now()
			if _, err := t.muster(ctx, "up"); err != nil {
				return err
			}
			walls["6 muster up again: nothing to do"] = append(walls["6 muster up again: nothing to do"], time.Since(again))
			last, err = measureMemory(t.state())
			return err
		}(); err != nil {
			return err
		}
	}
	w := newTable()
	_, _ = fmt.Fprintln(w, "milliseconds\tmedian\tmin\tmax\tn\t")
	for _, name := range slices.Sorted(maps.Keys(walls)) {
		all := walls[name]
		slices.Sort(all)
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t\n", name[2:], all[len(all)/2].Milliseconds(), all[0].Milliseconds(), all[len(all)-1].Milliseconds(), len(all))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println()
	return last.print()
}

func steps(m v1alpha1.Machine) map[v1alpha1.JoinStep]time.Time {
	at := map[v1alpha1.JoinStep]time.Time{}
	for _, record := range m.Status.Join {
		at[record.Step] = record.Time.Time
	}
	return at
}

// benchSimulated measures how fast many machines join.
func benchSimulated(ctx context.Context, bin string, nodes int) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	started := time.Now()
	if _, err := t.muster(ctx, "up", "--provider", "simulated", "--nodes", fmt.Sprint(nodes)); err != nil {
		return err
	}
	wall := time.Since(started)
	machines, err := t.machines(ctx)
	if err != nil {
		return err
	}
	var first, end time.Time
	var joins []time.Duration
	for _, m := range machines {
		at := steps(m)
		if first.IsZero() || at[v1alpha1.StepLaunched].Before(first) {
			first = at[v1alpha1.StepLaunched]
		}
		if at[v1alpha1.StepReady].After(end) {
			end = at[v1alpha1.StepReady]
		}
		joins = append(joins, at[v1alpha1.StepReady].Sub(at[v1alpha1.StepLaunched]))
	}
	if len(joins) == 0 {
		return fmt.Errorf("no simulated machine is there")
	}
	slices.Sort(joins)
	spent := end.Sub(first)
	w := newTable()
	_, _ = fmt.Fprintf(w, "%d simulated nodes\t\t\n", nodes)
	_, _ = fmt.Fprintf(w, "muster up\t%.1f s\t\n", wall.Seconds())
	_, _ = fmt.Fprintf(w, "first launched to last Ready\t%.1f s\t\n", spent.Seconds())
	_, _ = fmt.Fprintf(w, "joins per second\t%.0f\t\n", float64(nodes)/spent.Seconds())
	_, _ = fmt.Fprintf(w, "join p50 / p99\t%.1f / %.1f s\t\n", joins[len(joins)/2].Seconds(), joins[len(joins)*99/100].Seconds())
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println()
	m, err := measureMemory(t.state())
	if err != nil {
		return err
	}
	return m.print()
}
