// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/cluster/supervise"
)

const (
	// clustersInAll is how many clusters there are in the end, the first included.
	clustersInAll = 5
	// idleTime is how long an idle control plane is watched.
	idleTime = time.Minute
	// clusterPatience is how long a cluster may take, many times what it takes.
	clusterPatience = 3 * time.Minute
)

// benchClusters measures further clusters of one account, each with a local node: when the API server answers, when the node is Ready, what a
// control plane holds of memory, and what it takes of a core when nobody asks for anything.
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

// idle measures what each cluster's processes take of a core.
func (t trial) idle(ctx context.Context) error {
	before, err := t.processorTime()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idleTime):
	}
	after, err := t.processorTime()
	if err != nil {
		return err
	}
	w := newTable()
	_, _ = fmt.Fprintln(w, "idle control plane\t% of a core\t")
	names := make([]string, 0, len(after))
	for name := range after {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		_, _ = fmt.Fprintf(w, "%s\t%.1f\t\n", name, 100*(after[name]-before[name]).Seconds()/idleTime.Seconds())
	}
	return w.Flush()
}

// processorTime sums up what the processes of each cluster have taken, and those of the account.
func (t trial) processorTime() (map[string]time.Duration, error) {
	found, err := supervise.Find(t.state())
	if err != nil {
		return nil, err
	}
	sum := map[string]time.Duration{}
	for _, p := range found {
		if strings.HasPrefix(p.Name, "machine/") {
			continue
		}
		cluster, _ := component.SplitProcess(p.Name)
		if cluster == "" {
			cluster = "(account)"
		}
		raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "stat"))
		if err != nil {
			continue // it has ended meanwhile
		}
		// After the name in brackets, utime and stime are the 12th and 13th field, in hundredths of a second (proc_pid_stat(5)).
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		for _, field := range fields[11:13] {
			ticks, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("reading the processor time of %s: %w", p.Name, err)
			}
			sum[cluster] += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return sum, nil
}
