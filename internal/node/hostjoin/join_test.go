// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

func mustRun(t *testing.T, f func() error) {
	t.Helper()
	if err := f(); err != nil {
		t.Fatal(err)
	}
}

func TestJoin(t *testing.T) {
	w := newWorld(t)
	before := w.tree()
	mustRun(t, w.join)
	want := `discovery done: API server https://192.168.64.2:443; its authority is known by a pin
token done: accepted: system:bootstrap:abcdef
files done: 17 written, 0 as they should be
containerd done: containerd v2.2.1 answers
images done: 1 imported
kubelet done: started
`
	if got := w.said(); !strings.HasPrefix(got, want) {
		t.Errorf("said:\n%s\nwant it to begin with:\n%s", got, want)
	}
	for _, line := range []string{
		"client CSR done: issued\n", "certificate done: client certificate on disk: /var/lib/kubelet/pki/kubelet-client-current.pem\n",
		"node done: registered: worker-1\n", "programs done: 3 more installed\n", "watch done: started: certificates and address are looked after\n", "kube-proxy done: started\n", "ready done: node worker-1 is Ready\n",
	} {
		if !strings.Contains(w.said(), line) {
			t.Errorf("%q was not said:\n%s", line, w.said())
		}
	}
	if got := len(w.units.Units()); got != 4 {
		t.Errorf("%d units run, not 4: %v", got, w.units.Units())
	}
	for _, path := range []string{render.PathBootstrapKubeconfig, pendingKey} {
		if _, err := os.Lstat(w.at(path)); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	raw, err := os.ReadFile(w.at(LedgerPath))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(w.at(LedgerPath)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("ledger's mode is %v, error %v", info.Mode(), err)
	}
	for path, content := range w.tree() {
		if strings.Contains(content, "0123456789abcdef") || strings.Contains(string(raw), "0123456789abcdef") {
			t.Errorf("the token's secret is in %s, or in the ledger", path)
		}
	}
	for _, program := range w.run {
		if strings.Contains(program, "0123456789") {
			t.Errorf("the token is in the arguments of %s", program)
		}
	}
	mustRun(t, w.leave)
	if diff := cmp.Diff(before, w.tree()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
	if got := w.units.Units(); len(got) != 0 {
		t.Errorf("units still run: %v", got)
	}
	if nodes, err := w.cluster.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil || len(nodes.Items) != 0 {
		t.Errorf("%d nodes, error %v", len(nodes.Items), err)
	}
	if w.pods != 0 {
		t.Errorf("%d pods are left", w.pods)
	}
	mustRun(t, w.leave) // again
	mustRun(t, w.join)  // under the same name
}

func TestJoinAgainChangesNothing(t *testing.T) {
	w := newWorld(t)
	mustRun(t, w.join)
	before, calls := w.tree(), len(w.units.Calls())
	w.tokens = nil // it needs none
	mustRun(t, w.join)
	if diff := cmp.Diff(before, w.tree()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
	for _, call := range w.units.Calls()[calls:] {
		if strings.HasPrefix(call, "restart") || strings.HasPrefix(call, "stop") {
			t.Errorf("%s", call)
		}
	}
	if !strings.Contains(w.said(), "discovery done: not needed") {
		t.Errorf("said:\n%s", w.said())
	}
}

func TestJoinRepairs(t *testing.T) {
	w := newWorld(t)
	mustRun(t, w.join)
	before := w.tree()
	for _, path := range []string{"/etc/kubernetes/kubelet/config.json", "/usr/local/bin/runc", "/usr/local/bin/kubelet"} {
		if err := os.Remove(w.at(path)); err != nil {
			t.Fatal(err)
		}
	}
	w.write(render.PathKubeProxyConfig, "nonsense")
	done := len(w.units.Calls())
	mustRun(t, w.join)
	compare(t, "the host", before, w.tree())
	if calls := w.units.Calls()[done:]; !slices.Contains(calls, "restart kubelet.service") || !slices.Contains(calls, "restart kube-proxy.service") || slices.Contains(calls, "restart containerd.service") {
		t.Errorf("calls: %v", calls)
	}
}

// Killed at any change, a join is whole when it is run again, and a leave in its place leaves nothing.
func TestKilledAtEveryStep(t *testing.T) {
	reference := newWorld(t)
	start := reference.tree()
	mustRun(t, reference.join)
	joined, count := reference.tree(), len(reference.changes)
	mustRun(t, reference.leave)
	leaving := len(reference.changes)
	if count < 25 || leaving < 25 {
		t.Fatalf("only %d changes of a join and %d of a leave are counted", count, leaving)
	}
	for n := 1; n <= count; n++ {
		w := newWorld(t)
		w.crashAt = n
		if err := w.join(); !errors.Is(err, errCrash) {
			t.Fatalf("change %d: %v", n, err)
		}
		what := w.changes[n-1]
		w.crashAt = 0
		if n%2 == 0 { // every other is not taken up
			mustRun(t, w.leave)
			compare(t, fmt.Sprintf("join killed at %q, then leave", what), start, w.tree())
			continue
		}
		mustRun(t, w.join)
		compare(t, fmt.Sprintf("join killed at %q, then join", what), joined, w.tree())
		mustRun(t, w.leave)
		compare(t, fmt.Sprintf("join killed at %q, then join and leave", what), start, w.tree())
	}
	for n := 1; n <= leaving; n++ {
		w := newWorld(t)
		mustRun(t, w.join)
		w.crashAt = n
		if err := w.leave(); !errors.Is(err, errCrash) {
			t.Fatalf("leave, change %d: %v", n, err)
		}
		what := w.changes[n-1]
		w.crashAt = 0
		if n%2 == 0 {
			mustRun(t, w.join)
			compare(t, fmt.Sprintf("leave killed at %q, then join", what), joined, w.tree())
			if node, err := w.cluster.CoreV1().Nodes().Get(t.Context(), nodeName, metav1.GetOptions{}); err != nil || node.Spec.Unschedulable {
				t.Errorf("leave killed at %q, then join: node %v, error %v", what, node, err)
			}
		}
		mustRun(t, w.leave)
		compare(t, fmt.Sprintf("leave killed at %q, then leave", what), start, w.tree())
		if got := w.units.Units(); len(got) != 0 {
			t.Errorf("leave killed at %q, then leave: units still run: %v", what, got)
		}
	}
}

// Any number of joins and leaves, each killed anywhere, are as one whole one.
func TestKilledAtRandom(t *testing.T) {
	reference := newWorld(t)
	start := reference.tree()
	mustRun(t, reference.join)
	joined := reference.tree()
	for seed := range uint64(60) {
		w, random := newWorld(t), rand.New(rand.NewPCG(seed, 4))
		for range 1 + random.IntN(6) {
			w.crashAt = 1 + random.IntN(60)
			if random.IntN(3) > 0 {
				_ = w.join()
			} else {
				_ = w.leave()
			}
		}
		w.crashAt = 0
		mustRun(t, w.join)
		compare(t, fmt.Sprintf("seed %d, join", seed), joined, w.tree())
		mustRun(t, w.leave)
		compare(t, fmt.Sprintf("seed %d, leave", seed), start, w.tree())
		if got := w.units.Units(); len(got) != 0 {
			t.Errorf("seed %d: units still run: %v", seed, got)
		}
		if t.Failed() {
			return
		}
	}
}

func compare(t *testing.T, when string, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func TestPresentProgramsAndContainerd(t *testing.T) {
	w := newWorld(t)
	w.containerd = true
	w.write("/usr/local/bin/kubelet", "another build of the same version")
	w.write("/opt/cni/bin/loopback", "program cni/loopback")
	w.write("/var/lib/containerd/x", "theirs")
	before := w.tree()
	mustRun(t, w.join)
	after := w.tree()
	for _, path := range []string{"/usr/local/bin/containerd", "/etc/containerd/config.toml", "/etc/systemd/system/containerd.service"} {
		if after[path] != "" {
			t.Errorf("%s was made though a containerd answers", path)
		}
	}
	if got := after["/usr/local/bin/kubelet"]; got != before["/usr/local/bin/kubelet"] {
		t.Errorf("kubelet: %s", got)
	}
	if got := after[render.PathCNIConfig]; !strings.Contains(got, "10.244.3.0/24") {
		t.Errorf("network configuration: %s", got)
	}
	mustRun(t, w.leave)
	compare(t, "the host", before, w.tree())
}

// A cluster that runs kube-proxy in pods has nothing of it installed, now and whenever the host's files are put right.
func TestSkipKubeProxy(t *testing.T) {
	w := newWorld(t)
	before := w.tree()
	r := w.request()
	r.SkipKubeProxy = true
	for range 2 {
		if _, err := w.host().Join(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		for path := range w.tree() {
			if strings.Contains(path, "kube-proxy") {
				t.Errorf("%s was made", path)
			}
		}
		if got := len(w.units.Units()); got != 3 || strings.Contains(w.said(), "kube-proxy") {
			t.Errorf("units %v; said:\n%s", w.units.Units(), w.said())
		}
		r.SkipKubeProxy = false // it is remembered
	}
	mustRun(t, w.leave)
	compare(t, "the host", before, w.tree())
	if strings.Contains(strings.Join(w.run, " "), "--cleanup") {
		t.Errorf("a kube-proxy was told to clean up: %v", w.run)
	}
	mustRun(t, w.join)
	r.SkipKubeProxy = true
	if _, err := w.host().Join(t.Context(), r); err == nil || !strings.Contains(err.Error(), "`muster leave` first") {
		t.Errorf("error %v", err)
	}
}

// The kubelet's configuration of logind goes with it, unless somebody had written that file before.
func TestLogindConfig(t *testing.T) {
	w := newWorld(t)
	w.write("/etc/systemd/logind.conf.d/10-own.conf", "theirs")
	before := w.tree()
	mustRun(t, w.join)
	if w.tree()[logindConfig] == "" {
		t.Fatal("the kubelet wrote nothing")
	}
	mustRun(t, w.leave)
	compare(t, "the host", before, w.tree())
	w.write(logindConfig, "[Login]\nInhibitDelayMaxSec=150\n")
	before = w.tree()
	mustRun(t, w.join)
	mustRun(t, w.leave)
	compare(t, "the host", before, w.tree())
}

func TestDryRun(t *testing.T) {
	w := newWorld(t)
	before := w.tree()
	p, err := w.host().Plan(t.Context(), w.request())
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "the host", before, w.tree())
	if len(p.Files) != 20 || !slices.Equal(p.Services, []string{"kube-proxy.service", "kubelet.service", "containerd.service", watchUnit}) {
		t.Errorf("%d files, services %v", len(p.Files), p.Services)
	}
	for _, f := range p.Files {
		if strings.Contains(f.Content, "0123456789abcdef") {
			t.Errorf("%s shows the token", f.Path)
		}
	}
}

func TestConfigurationWins(t *testing.T) {
	w := newWorld(t)
	r := w.request()
	r.Spec.Cluster = nodeconfig.Cluster{Name: "mine", CIDR: "172.20.0.0/16"}
	if _, err := w.host().Join(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	tree := w.tree()
	if got := tree["/etc/kubernetes/kubelet/config.json"]; !strings.HasSuffix(got, "dns of 172.20.0.0/16") {
		t.Errorf("%s", got)
	}
	if got := tree[render.PathKubeProxyConfig]; !strings.HasSuffix(got, "proxy of 10.244.0.0/16") {
		t.Errorf("%s", got)
	}
}

func TestTwoAtOnce(t *testing.T) {
	w := newWorld(t)
	h := w.host()
	unlock, err := h.lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.join(); err == nil || !strings.Contains(err.Error(), "another muster join or leave") {
		t.Errorf("error %v", err)
	}
	unlock()
	mustRun(t, w.join)
}

func TestParseVersion(t *testing.T) {
	for said, want := range map[string][2]int{
		"Kubernetes v1.36.3\n": {1, 36},
		"containerd github.com/containerd/containerd/v2 v2.2.1 abc":     {2, 2},
		"runc version 1.4.0\ncommit: v1.4.0-0\n":                        {1, 4},
		"CNI ptp plugin v1.9.0\nCNI protocol versions supported: 0.1.0": {1, 9},
		"containerd-shim-runc-v2:\n  Version:  v2.2.1\n":                {2, 2},
	} {
		if got, err := parseVersion(said); err != nil || got != want {
			t.Errorf("%q: %v, %v", said, got, err)
		}
	}
	if _, err := parseVersion("usage: x"); err == nil {
		t.Error("a version was found where there is none")
	}
}

func TestProgramsOfOtherVersions(t *testing.T) {
	w := newWorld(t)
	h := w.host()
	h.Run = func(_ context.Context, program string, _ ...string) (string, error) {
		if strings.HasPrefix(program, w.root) {
			return "v1.5.0", nil
		}
		return "v1.36.3", nil
	}
	for name, want := range map[string]bool{"kubelet": false, "containerd": false, "runc": true, "kubernetes": false} {
		if got, why := h.usable(t.Context(), artifact{path: filepath.Join("/usr/local/bin", name), copyOf: "x"}); got != want {
			t.Errorf("%s: %t%s", name, got, why)
		}
	}
	if got, why := h.usable(t.Context(), artifact{path: "/opt/cni/bin/ptp", copyOf: "x"}); got || why != " (not of version 1.6 or newer)" {
		t.Errorf("ptp: %t%s", got, why)
	}
}
