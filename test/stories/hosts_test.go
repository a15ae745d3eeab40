// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/test/host"
)

// privateServer is the API server's endpoint in the VPC.
const privateServer = "172.31.0.4:443"

// TestHosts brings hosts that muster did not make into one cluster, by muster join and by kubeadm join.
//
//story:about node ./cmd/muster/join
func TestHosts(t *testing.T) {
	t.Parallel()
	i, hash := withoutNodes(t)
	t.Run("join by hand", func(t *testing.T) { joinByHand(t, i.in(t), hash, nil) })
	t.Run("muster join", func(t *testing.T) { musterJoin(t, i.in(t), hash) })
	t.Run("kubeadm join", func(t *testing.T) { kubeadmJoin(t, i.in(t), hash) })
}

// withoutNodes is a cluster that hosts are to join, and the hash of its authority.
func withoutNodes(t *testing.T) (i *installation, hash string) {
	t.Helper()
	if err := host.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	i = newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	var authority string
	i.eventually("the cluster's authority is published", func() (err error) {
		authority, err = i.kubectl("get", "configmap", "kube-root-ca.crt", "-o", `jsonpath={.data.ca\.crt}`)
		return err
	})
	// CoreDNS would wait for a node here, begin on a host before its kube-proxy does, and hold up whoever drains that
	// host by the half minute that it is given to end. Nobody asks for names.
	i.eventually("no pod waits for a node", func() error {
		_, err := i.kubectl("-n", "kube-system", "scale", "deployment/coredns", "--replicas=0")
		return err
	})
	return i, pin(t, authority)
}

// guest is a host that is to join, and the cluster.
type guest struct {
	installation *installation
	host         *host.Host
	hash         string // of the cluster's authority
}

// newGuest starts a host in the cluster's VPC, with what its owner has installed. The story must end before the cluster
// does.
func newGuest(t *testing.T, i *installation, hash, name, address string, install ...string) guest {
	t.Helper()
	network, err := vpc.OpenDefault(i.dir.VPCs())
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Start(t.Context(), host.Config{Name: name, Of: hostsOf(i.dir), Address: netip.MustParseAddr(address), Network: network, Bin: i.bin, Install: install})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			tell(t, h)
		}
		if err := h.Close(); err != nil {
			t.Errorf("closing host %s: %v", name, err)
		}
	})
	return guest{installation: i, host: h, hash: hash}
}

// tell logs what happened on a host whose story failed.
func tell(t *testing.T, h *host.Host) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	for _, unit := range []string{"kubelet", "containerd", "kube-proxy", "muster-node-watch"} {
		out, err := h.Run(ctx, "journalctl", "--no-pager", "--output=cat", "--lines=15", "--unit="+unit)
		t.Logf("%s on %s:\n%s%v", unit, h.Name, out, err)
	}
}

// in is the same guest for a step of its story.
func (g guest) in(t *testing.T) guest {
	t.Helper()
	g.installation = g.installation.in(t)
	return g
}

// must runs a program on the host that must not fail.
func (g guest) must(args ...string) string {
	g.installation.t.Helper()
	out, err := g.host.Run(g.installation.t.Context(), args...)
	if err != nil {
		g.installation.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// token makes one for this host alone.
func (g guest) token(args ...string) string {
	g.installation.t.Helper()
	out, _ := g.installation.muster(append([]string{"token", "create", "--node-name", g.host.Name, "--address", g.host.Address.String()}, args...)...)
	return strings.TrimSpace(out)
}

// signed waits until cluster-info is signed with a token, or is not, which the controller manager sees to.
func (g guest) signed(token string, want bool) {
	g.installation.t.Helper()
	id, _, _ := strings.Cut(token, ".")
	g.installation.eventually(fmt.Sprintf("cluster-info is signed with token %s: %v", id, want), func() error {
		data, err := g.installation.kubectl("-n", "kube-public", "get", "configmap", "cluster-info", "-o", "jsonpath={.data}")
		if err == nil && strings.Contains(data, "jws-kubeconfig-"+id) != want {
			err = errors.New("not yet")
		}
		return err
	})
}

// expiredToken makes one, and waits until it has expired and the controller manager has cleaned it up.
func (g guest) expiredToken() string {
	g.installation.t.Helper()
	token := g.token("--ttl", "1s")
	id, _, _ := strings.Cut(token, ".")
	g.installation.eventually("token "+id+" is gone", func() error {
		if left := g.installation.mustKubectl("-n", "kube-system", "get", "secret", "bootstrap-token-"+id, "--ignore-not-found", "-o", "name"); left != "" {
			return errors.New(left + " is there")
		}
		return nil
	})
	g.signed(token, false)
	return token
}

// stopServing ends the API server, and those who would start it again.
func (g guest) stopServing() {
	g.installation.t.Helper()
	before := g.installation.processes()
	for _, name := range []string{"guard", "serve"} {
		if err := syscall.Kill(before[name].PID, syscall.SIGKILL); err != nil {
			g.installation.t.Fatal(err)
		}
	}
	g.installation.kill("kube-apiserver")
}

// waitsForServer begins a join while nothing answers at the API server's endpoint, sees it wait, and returns what it
// printed when it had ended.
func (g guest) waitsForServer(join func() (string, error)) string {
	t := g.installation.t
	t.Helper()
	g.stopServing()
	type result struct {
		out string
		err error
	}
	joined := make(chan result, 1)
	go func() {
		out, err := join()
		joined <- result{out, err}
	}()
	select {
	case r := <-joined:
		t.Fatalf("it did not wait: %s%v", r.out, r.err)
	case <-time.After(3 * time.Second): // long enough for it to have asked in vain
	}
	g.installation.muster("up")
	r := <-joined
	if r.err != nil {
		t.Fatal(r.err)
	}
	if list, _ := g.installation.muster("token", "list"); !strings.Contains(list, g.host.Name) {
		t.Errorf("no token was used by %s, says token list:\n%s", g.host.Name, list)
	}
	return r.out
}

// pod runs one on the host, and looks at its log, which comes over the kubelet's serving certificate.
func (g guest) pod(name string) {
	g.installation.t.Helper()
	g.installation.apply(`apiVersion: v1
kind: Pod
metadata: {name: ` + name + `}
spec:
  nodeName: ` + g.host.Name + `
  terminationGracePeriodSeconds: 1
  containers:
  - name: hello
    image: muster.dev/workload:v1
    imagePullPolicy: IfNotPresent
    args: [serve]
`)
	g.installation.mustKubectl("wait", "--for=condition=Ready", "pod/"+name, "--timeout=60s")
	g.installation.mustKubectl("logs", name)
}

// pin is the hash of an authority's public key, as kubeadm writes it.
func pin(t *testing.T, authority string) string {
	t.Helper()
	sum := sha256.Sum256(certificate(t, authority).RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// certificate is the first of a text.
func certificate(t *testing.T, text string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" {
		t.Fatal("no certificate to begin with")
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
