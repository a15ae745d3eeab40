// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/cluster/servicestatus"
)

const shortLived = `apiVersion: muster.dev/v1alpha1
kind: Cluster
metadata: {name: muster}
spec:
  certificates: {clientDuration: 10m, servingDuration: 10m}
---
apiVersion: muster.dev/v1alpha1
kind: NodeGroup
metadata: {name: default}
spec:
  bootstrap: Token
  scalingConfig: {minSize: 0, desiredSize: 2, maxSize: 5}
`

// TestRotationOfKubeletsAuthority replaces the authority of kubelets' certificates while everything that depends on it
// is used without a pause: requests with the nodes' own certificates, requests to kubelets, of the kind that makes the
// API server read its file and of the kind that does not. Nothing of it may fail, and in the end the old authority
// opens nothing. It takes a quarter of an hour: certificates live for ten minutes at least, and the API server reads a
// file every five.
//
//story:about certificates/rotation certificates/rotator
func TestRotationOfKubeletsAuthority(t *testing.T) {
	i := newInstallation(t)
	i.up(shortLived)
	i.ready()
	i.apply(workload)
	i.mustKubectl("rollout", "status", "daemonset/hello", "--timeout=120s")
	i.eventually("kubelets serve", func() error {
		for _, pod := range i.pods() {
			if _, err := i.kubectl("logs", pod); err != nil {
				return err
			}
		}
		return nil
	})

	store := authority.NewStore(i.cluster().PKI())
	forged := filepath.Join(t.TempDir(), "forged.pem")
	i.copyFile(filepath.Join(i.cluster().PKI(), "kubelet", "kubelet-1.pem"), forged)
	if got := i.asProbeOf(forged); got != http.StatusOK {
		t.Fatalf("a certificate of the authority that signs is answered %d", got)
	}
	before := i.processes()
	w := i.watchHandshakes()
	started := time.Now()

	rotate := i.command(t.Context(), "certs", "rotate", "kubelet-ca", "-o", "json", "--timeout", "25m")
	var out, talk bytes.Buffer
	rotate.Stdout, rotate.Stderr = &out, &talk
	if err := rotate.Start(); err != nil {
		t.Fatal(err)
	}
	i.upstream(authorityRotates, "the new authority signs", func() error {
		listing, _, err := i.try("certs")
		if err == nil && !regexp.MustCompile(`kubelet-2 +- +signs`).MatchString(listing) {
			err = errors.New(listing)
		}
		return err
	})
	t.Logf("the new authority signed after %s", time.Since(started).Round(time.Second))
	i.kill("serve") // its successor goes on
	err := rotate.Wait()
	took := time.Since(started).Round(time.Second)
	t.Logf("after %s, muster certs rotate had said:\n%s%s", took, talk.String(), out.String())
	failures, counts := w.stop()
	t.Logf("meanwhile: %v", counts)
	for _, failure := range failures {
		t.Error(failure)
	}
	if err != nil {
		t.Fatalf("muster certs rotate: %v", err)
	}
	var status servicestatus.Rotation
	if err := json.Unmarshal(out.Bytes(), &status); err != nil {
		t.Fatal(err)
	}
	if status.Signs != "kubelet-2" || status.Rotation != nil || status.Last == nil || status.Last.Old != "kubelet-1" {
		t.Errorf("in the end the status is %+v", status)
	}
	i.oldAuthorityOpensNothing(store, forged)
	for name, p := range i.processes() {
		if name != "serve" && before[name].PID != p.PID {
			t.Errorf("%s was restarted (process %d, was %d)", name, p.PID, before[name].PID)
		}
	}
	if _, talk := i.muster("certs", "rotate", "kubelet-ca"); !strings.Contains(talk, "Nothing was begun") {
		t.Errorf("run again, it says: %s", talk)
	}
}

// oldAuthorityOpensNothing looks at everybody who was told whom to trust.
func (i *installation) oldAuthorityOpensNothing(store authority.Store, forged string) {
	i.t.Helper()
	ca, err := store.KubeletAuthority("kubelet-2")
	if err != nil {
		i.t.Fatal(err)
	}
	for _, name := range []string{"client", "server"} {
		disks, err := filepath.Glob(filepath.Join(i.dir.Machines(), "*", "root/var/lib/kubelet/pki", "kubelet-"+name+"-current.pem"))
		if err != nil || len(disks) != 2 {
			i.t.Errorf("%d nodes have a %s certificate (%v)", len(disks), name, err)
		}
		for _, link := range disks {
			pair, err := kubeletPair(link)
			if err != nil {
				i.t.Fatal(err)
			}
			if err := pair.Leaf.CheckSignatureFrom(ca); err != nil {
				i.t.Errorf("%s: %v", link, err)
			}
		}
	}
	if got := i.asProbeOf(forged); got != http.StatusUnauthorized {
		i.t.Errorf("a certificate of the old authority is answered %d", got)
	}
	if _, err := os.Stat(filepath.Join(i.cluster().PKI(), "kubelet", "kubelet-1.pem")); !os.IsNotExist(err) {
		i.t.Errorf("the old authority's key is still there (%v)", err)
	}
	want := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}))
	for _, name := range []string{"muster-kubelet-client-ca", "muster-kubelet-serving-ca"} {
		if got := i.mustKubectl("-n", "kube-system", "get", "configmap", name, "-o", `jsonpath={.data.ca\.crt}`); got != strings.TrimSpace(want) {
			i.t.Errorf("ConfigMap %s holds\n%s", name, got)
		}
	}
	old, err := kubeletPair(forged)
	if err != nil {
		i.t.Fatal(err)
	}
	delegated := i.mustKubectl("-n", "kube-system", "get", "configmap", "extension-apiserver-authentication", "-o", `jsonpath={.data.client-ca-file}`)
	for block, rest := pem.Decode([]byte(delegated)); block != nil; block, rest = pem.Decode(rest) {
		if bytes.Equal(block.Bytes, old.Leaf.Raw) {
			i.t.Error("API servers that delegate authentication still trust the old authority")
		}
	}
	// Once for both authorities and once for the new one alone.
	metrics := i.mustKubectl("get", "--raw", "/metrics")
	if !regexp.MustCompile(`rest_client_transport_ca_reload_total\{reason="updated",result="success"\} 2\n`).MatchString(metrics) {
		i.t.Errorf("the API server did not read twice whom to trust: %s", regexp.MustCompile(`(?m)^rest_client_transport_ca_reload_total.*$`).FindAllString(metrics, -1))
	}
}

func (i *installation) pods() []string {
	i.t.Helper()
	return strings.Fields(i.mustKubectl("get", "pods", "-l", "app=hello", "-o", "jsonpath={.items[*].metadata.name}"))
}

// kubeletPair reads a kubelet's certificate from its disk: a link, as seen on the machine, or a file.
func kubeletPair(path string) (tls.Certificate, error) {
	if target, err := os.Readlink(path); err == nil {
		path = filepath.Join(filepath.Dir(path), filepath.Base(target))
	}
	return tls.LoadX509KeyPair(path, path)
}

// handshakes uses certificates all the time and keeps what fails.
type handshakes struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	failures []string
	counts   map[string]int
}

func (w *handshakes) note(what string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
	if err != nil {
		w.failures = append(w.failures, fmt.Sprintf("%s %s: %v", time.Now().Format("15:04:05.000"), what, err))
	}
}

// stop returns what failed, and how often each thing was done.
func (w *handshakes) stop() ([]string, map[string]int) {
	w.cancel()
	w.done.Wait()
	const most = 20 // more would say the same
	return w.failures[:min(most, len(w.failures))], w.counts
}

// every repeats a question at an interval until the watch stops.
func (w *handshakes) every(ctx context.Context, interval time.Duration, what string, ask func(context.Context) error) {
	w.done.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if err := ask(ctx); ctx.Err() == nil {
				w.note(what, err)
			}
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
}

// watchHandshakes begins to use everything that depends on kubelets' certificates.
func (i *installation) watchHandshakes() *handshakes {
	i.t.Helper()
	ctx, cancel := context.WithCancel(i.t.Context())
	w := &handshakes{cancel: cancel, counts: map[string]int{}}
	i.t.Cleanup(func() { w.stop() })
	credential := filepath.Join(i.cluster().PKI(), "issued", "administrator.pem")
	pair, err := tls.LoadX509KeyPair(credential, credential)
	if err != nil {
		i.t.Fatal(err)
	}
	api := i.apiServer()
	ok := func(code int, err error) error {
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("answered %d", code)
		}
		return err
	}
	links, err := filepath.Glob(filepath.Join(i.dir.Machines(), "*", "root/var/lib/kubelet/pki/kubelet-client-current.pem"))
	if err != nil || len(links) != 2 {
		i.t.Fatalf("%d nodes have a client certificate (%v)", len(links), err)
	}
	for _, link := range links {
		last, err := kubeletPair(link)
		if err != nil {
			i.t.Fatal(err)
		}
		node := strings.TrimPrefix(last.Leaf.Subject.CommonName, "system:node:")
		// The kubelet's first try comes before the Node exists, its next ten seconds later.
		i.eventually("kubelet has its lease", func() error {
			_, err := i.kubectl("-n", "kube-node-lease", "get", "lease", node)
			return err
		})
		w.every(ctx, 200*time.Millisecond, "node's own certificate", func(ctx context.Context) error {
			if next, err := kubeletPair(link); err == nil { // the kubelet removes the link for a moment when it replaces it
				last = next
			}
			return ok(api.get(ctx, last, "/api/v1/nodes/"+node))
		})
		w.every(ctx, 200*time.Millisecond, "kubelet through the API server", func(ctx context.Context) error {
			return ok(api.get(ctx, pair, "/api/v1/nodes/"+node+"/proxy/healthz"))
		})
		w.every(ctx, time.Second, "lease is fresh", func(context.Context) error {
			out, err := i.kubectl("-n", "kube-node-lease", "get", "lease", node, "-o", "jsonpath={.spec.renewTime}") //nolint:contextcheck // kubectl ends with the test
			if err != nil {
				return err
			}
			renewed, err := time.Parse(time.RFC3339, out)
			if err == nil && time.Since(renewed) > 30*time.Second { // it is renewed every ten seconds
				err = fmt.Errorf("it was renewed at %s", out)
			}
			return err
		})
	}
	for _, pod := range i.pods() {
		w.every(ctx, 2*time.Second, "logs", func(context.Context) error {
			_, err := i.kubectl("logs", pod, "--tail=1") //nolint:contextcheck // kubectl ends with the test
			return err
		})
		w.every(ctx, 2*time.Second, "exec", func(context.Context) error {
			_, err := i.kubectl("exec", pod, "--", "/workload", "env") //nolint:contextcheck // kubectl ends with the test
			return err
		})
	}
	w.every(ctx, 5*time.Second, "machines' logs", i.nobodyIsRefused(slices.Clone(links)))
	return w
}

// nobodyIsRefused looks for words that kubelet and kube-proxy write when they are not believed, or do not believe.
func (i *installation) nobodyIsRefused(links []string) func(context.Context) error {
	refused := regexp.MustCompile(`Unauthorized|x509:|tls: |certificate signed by unknown authority`)
	seen := map[string]int{}
	first := true
	return func(context.Context) error {
		var errs []error
		for _, link := range links {
			root, _, _ := strings.Cut(link, "/root/")
			for _, name := range []string{"kubelet", "kube-proxy"} {
				path := filepath.Join(root, "root/var/log", name+".log")
				raw, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				fresh := raw[min(seen[path], len(raw)):]
				seen[path] = len(raw)
				for line := range bytes.Lines(fresh) {
					if refused.Match(line) && !first { // from before the rotation
						errs = append(errs, fmt.Errorf("%s of %s: %s", name, filepath.Base(root), bytes.TrimSpace(line)))
					}
				}
			}
		}
		first = false
		return errors.Join(errs...)
	}
}
