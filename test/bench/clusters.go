// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/supervise"
)

const (
	// clustersInAll is how many clusters there are in the end, the first included.
	clustersInAll = 5
	// settleTime is how long control planes are left alone before they count as idle, since the last one has just
	// started.
	settleTime = 30 * time.Second
	// idleTime is how long an idle control plane is watched.
	idleTime = time.Minute
	// clusterPatience is how long a cluster may take, many times what it takes.
	clusterPatience = 3 * time.Minute
)

// benchClusters measures further clusters of one account, each with a local node: when the API server answers, when the
// node is Ready, what a control plane holds of memory, and what it takes of a core when nobody asks for anything.
func benchClusters(ctx context.Context, bin string) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--nodes", "1"); err != nil {
		return err
	}
	w := newTable()
	_, _ = fmt.Fprintln(w, "seconds\tAPI answers\tfirst node Ready\t")
	for n := 2; n <= clustersInAll; n++ {
		name := "cluster-" + strconv.Itoa(n)
		began := time.Now()
		if _, err := t.muster(ctx, "create", "cluster", name, "--nodes", "1"); err != nil {
			return err
		}
		answers, err := t.until(ctx, began, func() bool { return t.kubectl(ctx, name, "get", "--raw", "/readyz") == "ok" })
		if err != nil {
			return fmt.Errorf("the API server of %s: %w", name, err)
		}
		ready, err := t.until(ctx, began, func() bool {
			return strings.Contains(t.kubectl(ctx, name, "get", "nodes", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`), "True")
		})
		if err != nil {
			return fmt.Errorf("the node of %s: %w", name, err)
		}
		_, _ = fmt.Fprintf(w, "cluster %d\t%.1f\t%.1f\t\n", n, answers.Seconds(), ready.Seconds())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println()
	if err := pause(ctx, settleTime); err != nil {
		return err
	}
	m, err := measureMemory(t.state())
	if err != nil {
		return err
	}
	if err := m.print(); err != nil {
		return err
	}
	fmt.Println()
	return t.idle(ctx)
}

// kubectl asks a cluster; "" if there is no answer.
func (t trial) kubectl(ctx context.Context, cluster string, args ...string) string {
	kubeconfig := t.state().Cluster(v1alpha1.ClusterSlug(cluster)).Kubeconfig()
	out, err := exec.CommandContext(ctx, filepath.Join(t.bin, "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// until returns the time from the beginning to the moment that a question is answered with yes.
func (t trial) until(ctx context.Context, began time.Time, ask func() bool) (time.Duration, error) {
	for !ask() {
		if time.Since(began) > clusterPatience {
			return 0, fmt.Errorf("not there after %s", clusterPatience)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return time.Since(began), nil
}

// idle measures what each process takes of a core, and the processes of each cluster together.
func (t trial) idle(ctx context.Context) error {
	before, err := t.processorTime()
	if err != nil {
		return err
	}
	if err := pause(ctx, idleTime); err != nil {
		return err
	}
	after, err := t.processorTime()
	if err != nil {
		return err
	}
	percent := map[string]float64{}
	for process, spent := range after {
		share := 100 * (spent - before[process]).Seconds() / idleTime.Seconds()
		cluster, _ := component.SplitProcess(process)
		percent[process] += share
		percent[cmp.Or(cluster, "the account")+", all"] += share
	}
	w := newTable()
	_, _ = fmt.Fprintln(w, "idle\t% of a core\t")
	for _, name := range slices.Sorted(maps.Keys(percent)) {
		_, _ = fmt.Fprintf(w, "%s\t%.2f\t\n", name, percent[name])
	}
	return w.Flush()
}

// pause waits, unless the measurement is called off.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// processorTime is what each process of the clusters and of the account has taken so far, machines left out.
func (t trial) processorTime() (map[string]time.Duration, error) {
	found, err := supervise.Find(t.state())
	if err != nil {
		return nil, err
	}
	spent := map[string]time.Duration{}
	for _, p := range found {
		if strings.HasPrefix(p.Name, "machine/") {
			continue
		}
		raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "stat"))
		if err != nil {
			continue // it has ended meanwhile
		}
		// After the name in brackets, utime and stime are the 12th and 13th field, in hundredths of a second
		// (proc_pid_stat(5)).
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		for _, field := range fields[11:13] {
			ticks, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("reading the processor time of %s: %w", p.Name, err)
			}
			spent[p.Name] += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return spent, nil
}
