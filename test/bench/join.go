// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/node/hostjoin"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/test/host"
)

const (
	joinName    = "bench-host"
	joinAddress = "172.31.0.220"
	joinServer  = "172.31.0.4:443"
)

// joinKind is a way to make a host a node.
type joinKind struct {
	name    string
	install []string
	prepare func(*host.Host, context.Context) error
	command func(j joinTrial, h *host.Host, token string) ([]string, error)
}

// joinKinds are compared on hosts of the same kind: programs are installed. For kubeadm, containerd must run, with the
// images; muster starts its own if none does.
func joinKinds() []joinKind {
	programs := append(host.ContainerdPrograms(), "kubelet", "kube-proxy")
	return []joinKind{
		{"muster join, starting containerd", programs, func(*host.Host, context.Context) error { return nil }, musterCommand},
		{"muster join, containerd runs", programs, (*host.Host).InstallContainerd, musterCommand},
		{"kubeadm join, containerd runs", host.KubeadmPrograms(), (*host.Host).InstallKubeadm, kubeadmCommand},
	}
}

func musterCommand(j joinTrial, h *host.Host, token string) ([]string, error) {
	if err := h.Write("/root/token", token+"\n", 0o600); err != nil {
		return nil, err
	}
	return []string{host.BinDir + "/muster", "join", joinServer, "--token-file", "/root/token", "--ca-cert-hash", j.pin}, nil
}

func kubeadmCommand(j joinTrial, h *host.Host, token string) ([]string, error) {
	return h.KubeadmCommand(host.KubeadmJoin{Endpoint: joinServer, Token: token, Hash: j.pin, Discovery: time.Minute})
}

// joinTimes are what is measured of a join: until the kubelet is started, the command ends and the Node is Ready, and
// the processor time that the command itself took, which is what it does rather than waits for.
type joinTimes struct{ kubelet, command, ready, processor []time.Duration }

// benchJoin measures `muster join` and `kubeadm join`, in turns, from the command line to a Ready node.
func benchJoin(ctx context.Context, bin string, rounds int) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--nodes", "0"); err != nil {
		return err
	}
	j, err := newJoinTrial(t)
	if err != nil {
		return err
	}
	kinds := joinKinds()
	times := make([]joinTimes, len(kinds))
	for range rounds {
		for i, kind := range kinds {
			if err := j.once(ctx, kind, &times[i]); err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
		}
	}
	w := newTable()
	_, _ = fmt.Fprintln(w, "milliseconds, median (min-max)\tkubelet started\tcommand ended\tReady\tits processor time\tn\t")
	for i, kind := range kinds {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t\n", kind.name, span(times[i].kubelet), span(times[i].command), span(times[i].ready), span(times[i].processor), rounds)
	}
	ours, theirs := times[1], times[2]
	_, _ = fmt.Fprintf(w, "kubeadm's as multiple of muster's, containerd runs\t%.1f\t%.1f\t%.1f\t%.1f\t\t\n",
		ratio(theirs.kubelet, ours.kubelet), ratio(theirs.command, ours.command), ratio(theirs.ready, ours.ready), ratio(theirs.processor, ours.processor))
	return w.Flush()
}

func median(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }

func span(all []time.Duration) string {
	return fmt.Sprintf("%d (%d-%d)", median(all).Milliseconds(), slices.Min(all).Milliseconds(), slices.Max(all).Milliseconds())
}

func ratio(a, b []time.Duration) float64 { return median(a).Seconds() / median(b).Seconds() }

// joinTrial is a cluster that hosts join.
type joinTrial struct {
	trial
	network *vpc.Network
	client  kubernetes.Interface
	pin     string
}

func newJoinTrial(t trial) (joinTrial, error) {
	network, err := vpc.OpenDefault(t.state().VPCs())
	if err != nil {
		return joinTrial{}, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", t.state().Cluster(clusterconfig.DefaultClusterName).Kubeconfig())
	if err != nil {
		return joinTrial{}, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return joinTrial{}, err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return joinTrial{}, err
	}
	pins, err := hostjoin.PinsOf(config.CAData)
	if err != nil {
		return joinTrial{}, err
	}
	return joinTrial{t, network, client, pins[0]}, nil
}

// once makes a host, has it join, and removes it.
func (j joinTrial) once(ctx context.Context, kind joinKind, times *joinTimes) (err error) {
	h, err := host.Start(ctx, host.Config{Name: joinName, Address: netip.MustParseAddr(joinAddress), Network: j.network, Bin: j.bin, Install: kind.install})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }() //nolint:contextcheck // it must be closed, whatever has ended
	if err := kind.prepare(h, ctx); err != nil {
		return err
	}
	token, err := j.muster(ctx, "token", "create", "--node-name", joinName, "--address", joinAddress)
	if err != nil {
		return err
	}
	command, err := kind.command(j, h, strings.TrimSpace(string(token)))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	ready := make(chan error, 1)
	var isReady time.Time
	go func() {
		err := j.untilReady(ctx)
		isReady = time.Now()
		ready <- err
	}()
	var clock unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &clock); err != nil {
		return err
	}
	started := time.Now()
	// The shell tells what its children used (times, POSIX).
	out, err := h.Run(ctx, append([]string{"sh", "-c", `"$@" >/root/said 2>&1 || { cat /root/said; exit 1; }; times; systemctl show --property=ExecMainStartTimestampMonotonic --value kubelet`, "sh"}, command...)...)
	if err != nil {
		return err
	}
	ended := time.Now()
	if err := <-ready; err != nil {
		return err
	}
	kubelet, processor, err := parseTimes(out)
	if err != nil {
		return err
	}
	times.kubelet = append(times.kubelet, kubelet-time.Duration(clock.Nano()))
	times.command = append(times.command, ended.Sub(started))
	times.ready = append(times.ready, isReady.Sub(started))
	times.processor = append(times.processor, processor)
	return j.client.CoreV1().Nodes().Delete(ctx, joinName, metav1.DeleteOptions{})
}

// untilReady watches for the Node to be Ready.
func (j joinTrial) untilReady(ctx context.Context) error {
	nodes, err := j.client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + joinName})
	if err != nil {
		return err
	}
	defer nodes.Stop()
	for event := range nodes.ResultChan() {
		node, ok := event.Object.(*corev1.Node)
		if ok && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			return nil
		}
	}
	return cmp.Or(ctx.Err(), errors.New("watching for the node: the watch ended"))
}

// parseTimes reads two lines like "0m0.12s 0m0.03s", the shell's own and its children's, and microseconds since the
// kernel's start.
func parseTimes(out string) (kubelet, processor time.Duration, err error) {
	words := strings.Fields(out)
	if len(words) != 5 {
		return 0, 0, fmt.Errorf("times and systemctl printed %q", out)
	}
	for _, word := range words[2:4] {
		took, err := time.ParseDuration(word)
		if err != nil {
			return 0, 0, fmt.Errorf("reading processor time: %w", err)
		}
		processor += took
	}
	micros, err := strconv.ParseInt(words[4], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("reading when the kubelet was started: %w", err)
	}
	return time.Duration(micros) * time.Microsecond, processor, nil
}
