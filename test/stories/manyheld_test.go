// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	heldNodes = 5000
	heldFor   = 10 * time.Minute
	// heldJoin is how long the nodes may take to be there.
	heldJoin = 20 * time.Minute
)

// TestManyNodesHeld has a cluster of 5,000 simulated nodes for ten minutes: none is NotReady at any time once all are
// Ready, and it is told how long leases took to be renewed and what memory each process has.
//
//story:about machine/machine machine/nodegroup cluster/serve
func TestManyNodesHeld(t *testing.T) {
	i := newInstallation(t)
	began := time.Now()
	i.muster("up", "--provider", "simulated", "--nodes", strconv.Itoa(heldNodes), "--timeout", heldJoin.String())
	t.Logf("%d nodes were Ready after %s", heldNodes, time.Since(began))

	nodes := i.watchReady()
	before := i.leaseRenewals()
	<-time.After(heldFor)
	after := i.leaseRenewals()
	if n, lost := nodes(); n != heldNodes || len(lost) > 0 {
		t.Errorf("there are %d nodes; %d times a node was NotReady: %q", n, len(lost), lost[:min(len(lost), 10)])
	}
	renewed, p50, p99 := after.since(before)
	t.Logf("%d leases were renewed, %.0f a second; half of them within %s, and 99 of 100 within %s", renewed, float64(renewed)/heldFor.Seconds(), p50, p99)
	if least := heldNodes * int(heldFor/time.Minute); renewed < least {
		t.Errorf("%d leases were renewed, and each node is to renew its own once a minute at least", renewed)
	}
	i.sayMemory()
	i.muster("down", "--delete")
}

// watchReady watches the cluster's nodes until it is asked how many there are and which of them was NotReady, and when.
func (i *installation) watchReady() (seen func() (nodes int, lost []string)) {
	i.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", i.cluster().Kubeconfig())
	if err != nil {
		i.t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		i.t.Fatal(err)
	}
	var lock sync.Mutex
	var lost []string
	look := func(object any) {
		node, ok := object.(*corev1.Node)
		if !ok {
			return
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				lock.Lock()
				lost = append(lost, fmt.Sprintf("%s at %s: %s %s", node.Name, time.Now().Format(time.RFC3339), c.Status, c.Reason))
				lock.Unlock()
			}
		}
	}
	ctx, stop := context.WithCancel(i.t.Context())
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Nodes().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, is any) { look(is) }}); err != nil {
		i.t.Fatal(err)
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		i.t.Fatal("the nodes cannot be watched")
	}
	return func() (int, []string) {
		stop()
		factory.Shutdown()
		lock.Lock()
		defer lock.Unlock()
		return len(informer.GetStore().ListKeys()), lost
	}
}

// buckets are how many requests took so many seconds at most, by the label le of a histogram.
type buckets map[float64]int

// leaseRenewals are the PUTs of Leases that the API server has answered.
func (i *installation) leaseRenewals() buckets {
	i.t.Helper()
	all := buckets{}
	for line := range strings.Lines(i.mustKubectl("--context", "muster", "get", "--raw", "/metrics")) {
		rest, ok := strings.CutPrefix(line, "apiserver_request_duration_seconds_bucket{")
		if !ok || !strings.Contains(rest, `resource="leases"`) || !strings.Contains(rest, `verb="PUT"`) {
			continue
		}
		_, rest, _ = strings.Cut(rest, `le="`)
		le, rest, _ := strings.Cut(rest, `"`)
		limit, err := strconv.ParseFloat(le, 64)
		if err != nil {
			i.t.Fatal(err)
		}
		_, count, _ := strings.Cut(strings.TrimSpace(rest), "} ")
		n, err := strconv.ParseFloat(count, 64)
		if err != nil {
			i.t.Fatal(err)
		}
		all[limit] += int(n)
	}
	return all
}

// since is how many requests there were since an earlier look, and the bounds of the buckets of the median and of 99 of a
// hundred.
func (b buckets) since(before buckets) (n int, p50, p99 time.Duration) {
	n = b[math.Inf(1)] - before[math.Inf(1)]
	bound := func(share float64) time.Duration {
		least := math.Inf(1)
		for limit, count := range b {
			if float64(count-before[limit]) >= share*float64(n) {
				least = min(least, limit)
			}
		}
		return time.Duration(least * float64(time.Second))
	}
	return n, bound(0.5), bound(0.99)
}

// sayMemory says what memory each process of the installation has: its share of what is resident
// (proc_pid_smaps_rollup(5)).
func (i *installation) sayMemory() {
	i.t.Helper()
	running, err := i.running()
	if err != nil {
		i.t.Fatal(err)
	}
	sum := 0
	for name, p := range running {
		raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "smaps_rollup"))
		if err != nil {
			i.t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(raw), "\nPss:")
		kib, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			i.t.Fatal(err)
		}
		sum += kib
		i.t.Logf("%s: %d MiB", name, kib>>10)
	}
	i.t.Logf("all of them: %d MiB, %.1f KiB a node", sum>>10, float64(sum)/heldNodes)
}
