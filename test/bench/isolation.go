// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine/local"
)

const (
	// isolatedRounds is the number of rounds of everything but `muster up`, whose number is in the command line.
	isolatedRounds = 15
	isolationDocs  = `apiVersion: muster.dev/v1alpha1
kind: Cluster
metadata: {name: muster}
spec: {name: muster}
`
	isolationGroup = `---
apiVersion: muster.dev/v1alpha1
kind: NodeGroup
metadata: {namespace: muster, name: %s}
spec: {name: %[1]s, isolation: %[1]s, scalingConfig: {desiredSize: %d}}
`
)

// isolations are measured in turns; the first one is what the other is compared with.
func isolations() []v1alpha1.Isolation {
	return []v1alpha1.Isolation{v1alpha1.IsolationNone, v1alpha1.IsolationUserNamespace}
}

// isolated is what was measured of machines with one isolation.
type isolated struct {
	isolation     v1alpha1.Isolation
	up, pods      []time.Duration
	fsync, memory []float64 // microseconds of the median, MiB of a machine
	network       *reach
}

// benchIsolation measures machines with a user namespace beside machines without one, in turns: the time from nothing
// to three nodes, pod start, a connection between two nodes' pods, writes that wait for a machine's disk, and the
// memory of what a machine runs beside pods.
func benchIsolation(ctx context.Context, bin string, rounds int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all []*isolated
	for _, isolation := range isolations() {
		all = append(all, &isolated{isolation: isolation})
	}
	order := slices.Clone(all)
	for range rounds {
		for _, one := range order {
			if err := one.measureUp(ctx, bin); err != nil {
				return err
			}
		}
		slices.Reverse(order)
	}
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if err := t.upIsolated(ctx, 2, isolations()...); err != nil {
		return err
	}
	client, err := t.client()
	if err != nil {
		return err
	}
	if err := t.settled(ctx, client); err != nil {
		return err
	}
	for _, one := range all {
		if one.memory, err = t.memoryOfMachines(ctx, client, one.isolation); err != nil {
			return fmt.Errorf("%s: %w", one.isolation, err)
		}
	}
	for _, one := range all {
		if err := one.prepare(ctx, client); err != nil {
			return fmt.Errorf("%s: %w", one.isolation, err)
		}
	}
	for n := range isolatedRounds + 1 {
		for _, one := range order {
			if err := one.measure(ctx, t, client, n); err != nil {
				return fmt.Errorf("%s: %w", one.isolation, err)
			}
		}
		slices.Reverse(order)
	}
	return reportIsolation(all[0], all[1])
}

// upIsolated makes a cluster with a node group of each isolation.
func (t trial) upIsolated(ctx context.Context, nodes int, of ...v1alpha1.Isolation) error {
	text := []byte(isolationDocs)
	for _, isolation := range of {
		text = fmt.Appendf(text, isolationGroup, isolation, nodes)
	}
	file := filepath.Join(t.dir, "isolation.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	_, err := t.muster(ctx, "up", "-f", file, "--allow-host-root", "muster")
	return err
}

func (one *isolated) measureUp(ctx context.Context, bin string) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	begun := time.Now()
	if err := t.upIsolated(ctx, 3, one.isolation); err != nil {
		return err
	}
	one.up = append(one.up, time.Since(begun))
	return nil
}

// prepare starts two pods on two nodes, and a server in the network of one of them.
func (one *isolated) prepare(ctx context.Context, client kubernetes.Interface) error {
	pods, err := podWire(ctx, client, one.selector(), string(one.isolation))
	if err != nil {
		return err
	}
	one.network, err = pods.reach(ctx, string(one.isolation))
	return err
}

func (one *isolated) selector() string { return v1alpha1.LabelNodeGroup + "=" + string(one.isolation) }

// measure takes each figure once; the first round is not counted.
func (one *isolated) measure(ctx context.Context, t trial, client kubernetes.Interface, n int) error {
	pod := benchPod(fmt.Sprint(one.isolation, "-start-", n), "")
	pod.Spec.NodeSelector = map[string]string{v1alpha1.LabelNodeGroup: string(one.isolation)}
	took, err := startPod(ctx, client, pod)
	if err != nil {
		return err
	}
	if err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		return err
	}
	if err := one.network.measure(ctx); err != nil {
		return err
	}
	median, err := t.fsyncIn(ctx, string(one.isolation)+"-0")
	if err != nil {
		return err
	}
	if n == 0 {
		one.network.throughput, one.network.latency = nil, nil
		return nil
	}
	one.pods, one.fsync = append(one.pods, took), append(one.fsync, median)
	return nil
}

// fsyncIn writes to the disk of a pod's machine, and returns the median of what a write that waits for it took, in
// microseconds.
func (t trial) fsyncIn(ctx context.Context, pod string) (median float64, err error) {
	cmd := exec.CommandContext(ctx, filepath.Join(t.bin, "kubectl"), "exec", pod, "--", "/workload", "fsync", "/scratch/file")
	cmd.Env = t.environ()
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("writing in pod %s: %w", pod, err)
	}
	_, err = fmt.Fscan(bytes.NewReader(out), &median)
	return median, err
}

// memoryOfMachines is the memory of what each machine of a group runs, in MiB of proportional memory. A machine that a
// pod is on is left out: containerd and its shim take 25 MiB for the first one.
func (t trial) memoryOfMachines(ctx context.Context, client kubernetes.Interface, isolation v1alpha1.Isolation) (mib []float64, err error) {
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	machines, err := t.machines(ctx)
	if err != nil {
		return nil, err
	}
	running, err := local.Running(t.state())
	if err != nil {
		return nil, err
	}
	for _, m := range machines {
		busy := slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == m.Status.NodeName })
		if running[m.Name] == 0 || m.Status.Isolation != isolation || busy {
			continue
		}
		inside, err := machineProcesses(running[m.Name])
		if err != nil {
			return nil, err
		}
		var kib int
		for pid := range inside {
			if held, err := memoryOf(pid); err == nil { // it may have ended meanwhile
				kib += held.proportional
			}
		}
		mib = append(mib, float64(kib)/1024)
	}
	if len(mib) == 0 {
		return nil, errors.New("no machine without pods runs")
	}
	return mib, nil
}

func reportIsolation(none, own *isolated) error {
	seconds := func(all []time.Duration) float64 { return quantile(all, 50).Seconds() }
	w := newTable()
	_, _ = fmt.Fprintf(w, "median\t%s\t%s\tratio\tn\t\n", none.isolation, own.isolation)
	for _, row := range []struct {
		name string
		a, b float64
		n    int
	}{
		{"muster up, nothing to 3 Ready nodes, s", seconds(none.up), seconds(own.up), len(own.up)},
		{"pod, created to Ready, ms", 1000 * seconds(none.pods), 1000 * seconds(own.pods), len(own.pods)},
		{"pod to pod on another node, MiB/s", middle(none.network.throughput), middle(own.network.throughput), len(own.network.throughput)},
		{"pod to pod and back, µs", middle(none.network.latency), middle(own.network.latency), len(own.network.latency)},
		{"write and fsync on the machine's disk, µs", middle(none.fsync), middle(own.fsync), len(own.fsync)},
		{"memory of a machine without pods, MiB", middle(none.memory), middle(own.memory), len(own.memory)},
	} {
		_, _ = fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%d\t\n", row.name, row.a, row.b, row.b/row.a, row.n)
	}
	return w.Flush()
}

// scratched gives a pod a directory of its machine's disk.
func scratched(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}
	return pod
}
