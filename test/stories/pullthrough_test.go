// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster.dev/muster/internal/image/upstream/upstreamtest"
	"muster.dev/muster/internal/platform/host"
)

// listen listens in a namespace.
func (h *farHost) listen(namespace *os.File, address string) net.Listener {
	h.t.Helper()
	var listener net.Listener
	if err := host.InNetwork(namespace, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(h.t.Context(), "tcp4", address)
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
	return listener
}

// serveRegistry has a public registry answer far away, by TLS, and returns the path of its authority.
func (h *farHost) serveRegistry(registry http.Handler) string {
	h.t.Helper()
	server := httptest.NewUnstartedServer(registry) // its certificate has *.example.com
	_ = server.Listener.Close()
	server.Listener = h.listen(h.far, ":443")
	server.StartTLS()
	h.t.Cleanup(server.Close)
	path := filepath.Join(h.t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// serveProxy has a proxy answer on the host's loopback, and counts what it connects to the far registry.
func (h *farHost) serveProxy(address string) *atomic.Int64 {
	h.t.Helper()
	count := new(atomic.Int64)
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != farName+":443" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		var to net.Conn
		if err := host.InNetwork(h.near, func() (err error) { //nolint:contextcheck // the tunnel is the test's, and outlives the request
			to, err = new(net.Dialer).DialContext(h.t.Context(), "tcp4", farAddress+":443")
			return err
		}); err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		count.Add(1)
		w.WriteHeader(http.StatusOK)
		from, read, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(to, read); _ = to.Close() }() // bytes that the server has read already come first
		_, _ = io.Copy(from, to)
		_ = from.Close()
	})}
	listener := h.listen(h.near, address)
	go func() { _ = server.Serve(listener) }()
	h.t.Cleanup(func() { _ = server.Close() })
	return count
}

// resolver makes the configuration and the layer of an image of one program, which resolves names by musl.
func resolver(t *testing.T, version string) (config, layer string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "resolve")
	compile := exec.CommandContext(t.Context(), "musl-gcc", "-static", "-Wall", "-Werror", "-O1", "-o", program, "testdata/resolve.c")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("compiling with musl, which tools/testneeds.sh installs: %v\n%s", err, out)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: "resolve", Mode: 0o755, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(archive.Bytes())
	config = fmt.Sprintf(`{"architecture":%q,"os":"linux","config":{"Entrypoint":["/resolve"],"Labels":{"version":%q}},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}`,
		runtime.GOARCH, version, hex.EncodeToString(sum[:]))
	return config, archive.String()
}

// TestPullThrough is the tale of an image of a public registry: one machine pulls it, and another one has it when
// nothing leaves any more. Its program is one of musl, and resolves full names over the way out. A proxy of the host is
// used once `muster up` has been told of it.
//
//story:about image/pullthrough image/pulledstore image/upstream image/pullthroughconfig
func TestPullThrough(t *testing.T) {
	h := newFarHost(t)
	registry := upstreamtest.New()
	authority := h.serveRegistry(registry)
	for _, tag := range []string{"v1", "v2"} {
		config, layer := resolver(t, tag)
		registry.Put("team/resolve", tag, config, layer)
	}
	i := newInstallation(t)
	i.host, i.egress = h, "NAT"
	if err := os.MkdirAll(string(i.dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(i.dir.Registries(), fmt.Appendf(nil, "registries:\n- {name: %s, certificateAuthority: %s}\n", farName, authority), 0o600); err != nil {
		t.Fatal(err)
	}
	i.muster("up", "--nodes", "2", "--timeout", "3m")
	i.mustKubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
	nodes := strings.Fields(i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
	if len(nodes) != 2 {
		t.Fatalf("nodes %q", nodes)
	}
	run := func(pod, node, tag string, network bool, name string) {
		i.apply(fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: %s
  hostNetwork: %t
  dnsPolicy: %s
  restartPolicy: OnFailure
  containers: [{name: resolve, image: "%s/team/resolve:%s", imagePullPolicy: Always, args: [%s]}]
`, pod, node, network, map[bool]string{true: "Default", false: "ClusterFirst"}[network], farName, tag, name))
	}
	says := func(pod, want string) {
		t.Helper()
		i.eventually(pod+" says "+want, func() error {
			got, err := i.kubectl("logs", pod)
			if err == nil && !strings.Contains(got, want) {
				err = fmt.Errorf("%q", got)
			}
			if err != nil {
				events, _ := i.kubectl("get", "events", "--field-selector=involvedObject.name="+pod, "-o", "jsonpath={.items[*].message}")
				err = fmt.Errorf("%w\n%s", err, events)
			}
			return err
		})
	}
	run("pod", nodes[0], "v1", false, farName)
	says("pod", farName+" "+farAddress)
	run("machine", nodes[0], "v1", true, farName)
	says("machine", farName+" "+farAddress)

	proxied := h.serveProxy("127.0.0.1:3128")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
	i.muster("up")
	run("proxied", nodes[0], "v2", false, "kubernetes.default.svc.cluster.local")
	says("proxied", "kubernetes.default.svc.cluster.local ")
	if proxied.Load() == 0 {
		t.Error("the host's proxy was not asked")
	}

	i.setEgress(`{"mode": "None"}`)
	i.eventually("nothing leaves any more", func() error {
		if _, ok := i.processes()[i.vpcProcess()+"-egress"]; ok {
			return fmt.Errorf("the process of the way out runs")
		}
		return nil
	})
	registry.Forget()
	i.kill("registry")
	run("offline", nodes[1], "v1", false, "kubernetes.default.svc.cluster.local")
	says("offline", "kubernetes.default.svc.cluster.local ")
	run("never", nodes[1], "v3", false, "x")
	i.eventually("an image that was not pulled is refused, and why", func() error {
		message, err := i.kubectl("get", "events", "--field-selector=involvedObject.name=never", "-o", "jsonpath={.items[*].message}")
		if err != nil || !strings.Contains(message, "has no way out (spec.egress.mode of the VPC)") {
			return fmt.Errorf("%q %w", message, err)
		}
		return nil
	})
	if asked := registry.All(); asked != 0 {
		t.Errorf("the registry was asked %d times by a VPC without a way out", asked)
	}
}
