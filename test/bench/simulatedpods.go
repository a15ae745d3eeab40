// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// podsOfNode is how many pods each simulated node has.
	podsOfNode = 2
	// heldFor is how long nodes and pods are held while what they take is measured.
	heldFor = time.Minute
)

// podMoment is what has been spent by a moment, and what is held then.
type podMoment struct {
	spent    map[string]time.Duration
	requests map[string]float64
	memory   *memory
}

// benchSimulatedPods measures what pods of simulated nodes take: to become Available and to be deleted, and while they
// are held.
func benchSimulatedPods(ctx context.Context, bin string, nodes int) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--provider", "simulated", "--nodes", strconv.Itoa(nodes), "--simulate-pods", "--timeout", "10m"); err != nil {
		return err
	}
	var moments []podMoment
	note := func() error {
		m, err := t.podMoment(ctx)
		moments = append(moments, m)
		return err
	}
	pods, walls := nodes*podsOfNode, []time.Duration{}
	timed := func(args ...string) error {
		began := time.Now()
		if _, err := t.mustKubectl(ctx, args...); err != nil {
			return err
		}
		walls = append(walls, time.Since(began))
		return nil
	}
	for _, step := range []func() error{
		func() error { return pause(ctx, settleTime) }, note,
		func() error { return pause(ctx, heldFor) }, note,
		func() error {
			_, err := t.mustKubectl(ctx, "create", "deployment", "many", "--image=none", "--replicas="+strconv.Itoa(pods))
			return err
		},
		func() error { return timed("rollout", "status", "deployment/many", "--timeout=10m") }, note,
		func() error { return pause(ctx, heldFor) }, note,
		func() error {
			_, err := t.mustKubectl(ctx, "delete", "deployment", "many")
			return err
		},
		func() error { return timed("wait", "--for=delete", "pods", "-l", "app=many", "--timeout=10m") }, note,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return printPodMoments(moments, walls, nodes, pods)
}

// podMoment measures what has been spent so far.
func (t trial) podMoment(ctx context.Context) (m podMoment, err error) {
	if m.spent, err = t.processorTime(); err != nil {
		return m, err
	}
	if m.requests, err = t.requests(ctx); err != nil {
		return m, err
	}
	m.memory, err = measureMemory(t.state())
	return m, err
}

// requests counts the requests that kube-apiserver was asked about pods and Nodes, by verb and resource.
func (t trial) requests(ctx context.Context) (map[string]float64, error) {
	out, err := t.mustKubectl(ctx, "get", "--raw", "/metrics")
	if err != nil {
		return nil, err
	}
	counts := map[string]float64{}
	for line := range strings.Lines(out) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if !ok || !strings.HasPrefix(name, "apiserver_request_total{") {
			continue
		}
		label := func(key string) string {
			_, rest, _ := strings.Cut(name, key+`="`)
			text, _, _ := strings.Cut(rest, `"`)
			return text
		}
		number, err := strconv.ParseFloat(value, 64)
		if resource := label("resource"); err == nil && (resource == "pods" || resource == "nodes") {
			counts[strings.TrimSuffix(label("verb")+" "+resource+"/"+label("subresource"), "/")] += number
		}
	}
	return counts, nil
}

// printPodMoments prints what was spent between moments, by process, and held at each.
func printPodMoments(moments []podMoment, walls []time.Duration, nodes, pods int) error {
	fmt.Printf("%d simulated nodes, %d pods: Available after %.1f s, gone after %.1f s\n", nodes, pods, walls[0].Seconds(), walls[1].Seconds())
	w := newTable()
	_, _ = fmt.Fprintln(w, "CPU seconds, MiB\tnodes held\tpods start\tpods held\tpods go\tMiB before\tMiB with pods\t")
	var sum [4]float64
	for _, name := range slices.Sorted(maps.Keys(moments[0].spent)) {
		var cells []string
		for i := range sum {
			spent := (moments[i+1].spent[name] - moments[i].spent[name]).Seconds()
			sum[i] += spent
			cells = append(cells, fmt.Sprintf("%.2f", spent))
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t\n", name, strings.Join(cells, "\t"), moments[1].memory.anonymous(name), moments[3].memory.anonymous(name))
	}
	_, _ = fmt.Fprintf(w, "all\t%.2f\t%.2f\t%.2f\t%.2f\t\t\t\n", sum[0], sum[1], sum[2], sum[3])
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println()
	w = newTable()
	_, _ = fmt.Fprintln(w, "requests\tpods start\ta pod\tpods go\ta pod\t")
	for _, what := range slices.Sorted(maps.Keys(moments[4].requests)) {
		start, end := moments[2].requests[what]-moments[1].requests[what], moments[4].requests[what]-moments[3].requests[what]
		if start+end > 0 {
			_, _ = fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.0f\t%.2f\t\n", what, start, start/float64(pods), end, end/float64(pods))
		}
	}
	return w.Flush()
}

// anonymous is the memory of processes of a name that is of no file, in MiB.
func (m *memory) anonymous(name string) (mib float64) {
	for _, kib := range m.kib[name] {
		mib += float64(kib.anonymous) / 1024
	}
	return mib
}
