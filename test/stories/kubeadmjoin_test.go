// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/test/host"
)

const (
	workerName    = "worker-1"
	workerAddress = "192.168.64.200"
)

// TestKubeadmJoin brings a machine that muster did not make into a cluster by kubeadm, as upstream built it and as people know it.
//
// What it does not tell of: a host whose clock is wrong. Linux has no namespace for the time of day (time_namespaces(7)), and this
// machine's clock is not the story's to set; internal/discovery and internal/preflight are told other times instead.
func TestKubeadmJoin(t *testing.T) {
	if err := host.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready(30 * time.Second)
	w := newKubeadmHost(t, i, workerName, workerAddress)
	k := &kubeadmStory{installation: i, worker: w, hash: pin(t, i.mustKubectl("get", "configmap", "kube-root-ca.crt", "-o", `jsonpath={.data.ca\.crt}`))}

	for _, step := range []struct {
		name string
		run  func(*kubeadmStory, *testing.T)
	}{
		{"the pin must be right", (*kubeadmStory).wrongPins},
		{"the token must be there still", (*kubeadmStory).deadTokens},
		{"a server that is down is waited for and then the machine becomes a node", (*kubeadmStory).serverComesBack},
		{"certificates are where upstream's kubelet leaves them", (*kubeadmStory).certificates},
		{"pods run and logs and exec go over the serving certificate", (*kubeadmStory).pods},
		{"after kubeadm reset the plain command line joins it again", (*kubeadmStory).again},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(k.in(t), t) }) {
			return
		}
	}
}

type kubeadmStory struct {
	installation *installation
	worker       *kubeadmHost
	hash         string // of the cluster's authority
}

// in is the same story for one step of it.
func (k *kubeadmStory) in(t *testing.T) *kubeadmStory {
	t.Helper()
	w := *k.worker
	w.t = t
	return &kubeadmStory{installation: k.installation.in(t), worker: &w, hash: k.hash}
}

// token makes one for the worker alone.
func (k *kubeadmStory) token(args ...string) string {
	k.installation.t.Helper()
	out, _ := k.installation.muster(append([]string{"token", "create", "--node-name", workerName, "--address", workerAddress}, args...)...)
	return strings.TrimSpace(out)
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

// refused runs kubeadm join, which must fail in discovery for a reason, and leave the machine as it was.
func (k *kubeadmStory) refused(t *testing.T, token, hash, reason string) {
	t.Helper()
	out, err := k.worker.join(t.Context(), token, hash, 10*time.Second)
	if err == nil {
		t.Fatalf("kubeadm joined:\n%s", out)
	}
	if !strings.Contains(err.Error(), reason) {
		t.Errorf("kubeadm does not say %q:\n%v", reason, err)
	}
	for _, file := range []string{"/etc/kubernetes/bootstrap-kubelet.conf", "/etc/kubernetes/pki/ca.crt", "/var/lib/kubelet/config.yaml"} {
		if _, err := k.worker.Run(t.Context(), "test", "!", "-e", file); err != nil {
			t.Errorf("%s was written", file)
		}
	}
}

func (k *kubeadmStory) wrongPins(t *testing.T) {
	token := k.token()
	const notPinned = "none of the public keys"
	k.refused(t, token, "sha256:"+strings.Repeat("0", 64), notPinned)
	// An authority that is the cluster's, too, but does not vouch for the API server.
	other := k.installation.mustKubectl("-n", "kube-system", "get", "configmap", "extension-apiserver-authentication", "-o", `jsonpath={.data.requestheader-client-ca-file}`)
	k.refused(t, token, pin(t, other), notPinned)
	id, _, _ := strings.Cut(token, ".")
	k.refused(t, id+"."+strings.Repeat("0", 16), k.hash, "failed to verify JWS signature")
}

func (k *kubeadmStory) deadTokens(t *testing.T) {
	const unsigned = "could not find a JWS signature"
	deleted := k.token()
	id, _, _ := strings.Cut(deleted, ".")
	k.signed(id, true)
	k.installation.muster("token", "delete", id)
	k.signed(id, false)
	k.refused(t, deleted, k.hash, unsigned)

	expired := k.token("--ttl", "2s")
	id, _, _ = strings.Cut(expired, ".")
	k.signed(id, false)
	k.refused(t, expired, k.hash, unsigned)
}

// signed waits until cluster-info is signed with a token, or is not, which the controller manager sees to.
func (k *kubeadmStory) signed(id string, want bool) {
	k.installation.t.Helper()
	k.installation.eventually(fmt.Sprintf("cluster-info signed with token: %v", want), 30*time.Second, func() error {
		data, err := k.installation.kubectl("-n", "kube-public", "get", "configmap", "cluster-info", "-o", "jsonpath={.data}")
		if err == nil && strings.Contains(data, "jws-kubeconfig-"+id) != want {
			err = errors.New("not yet")
		}
		return err
	})
}

// serverComesBack runs kubeadm join while nothing answers at the API server's endpoint.
func (k *kubeadmStory) serverComesBack(t *testing.T) {
	token := k.token()
	id, _, _ := strings.Cut(token, ".")
	k.signed(id, true)
	before := k.installation.processes()
	for _, name := range []string{"guard", "serve"} { // nobody is left to start the API server again
		if err := syscall.Kill(before[name].PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	k.installation.kill("kube-apiserver")
	type result struct {
		out string
		err error
	}
	joined := make(chan result, 1)
	go func() {
		out, err := k.worker.join(t.Context(), token, k.hash, 2*time.Minute)
		joined <- result{out, err}
	}()
	select {
	case r := <-joined:
		t.Fatalf("kubeadm did not wait: %s%v", r.out, r.err)
	case <-time.After(5 * time.Second): // long enough for it to have asked in vain
	}
	k.installation.muster("up")
	r := <-joined
	if r.err != nil {
		t.Fatal(r.err)
	}
	if !strings.Contains(r.out, "This node has joined the cluster") {
		t.Errorf("kubeadm printed:\n%s", r.out)
	}
	k.ready()
	if list, _ := k.installation.muster("token", "list"); !strings.Contains(list, workerName) {
		t.Errorf("no token was used by %s, says token list:\n%s", workerName, list)
	}
}

func (k *kubeadmStory) ready() {
	k.installation.t.Helper()
	took := k.installation.eventually(workerName+" is Ready", 60*time.Second, func() error {
		ready, err := k.installation.kubectl("get", "node", workerName, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && ready != "True" {
			err = fmt.Errorf("Ready is %q", ready)
		}
		return err
	})
	k.installation.t.Logf("Ready %s after kubeadm had ended", took.Round(10*time.Millisecond))
}

func (k *kubeadmStory) certificates(t *testing.T) {
	for _, name := range []string{"client", "server"} {
		link := "/var/lib/kubelet/pki/kubelet-" + name + "-current.pem"
		k.installation.eventually(link, 30*time.Second, func() error {
			_, err := k.worker.Run(t.Context(), "test", "-L", link)
			return err
		})
		target := k.worker.must("readlink", link)
		if !strings.HasPrefix(target, "/var/lib/kubelet/pki/kubelet-"+name+"-20") {
			t.Errorf("%s leads to %s", link, target)
		}
		if mode := k.worker.must("stat", "--format=%a", target); mode != "600" {
			t.Errorf("%s has mode %s", target, mode)
		}
	}
	served := certificate(t, k.worker.must("cat", "/var/lib/kubelet/pki/kubelet-server-current.pem"))
	names := fmt.Sprint(served.Subject.CommonName, served.DNSNames, served.IPAddresses)
	if want := fmt.Sprintf("system:node:%[1]s[%[1]s] [%[2]s]", workerName, workerAddress); names != want {
		t.Errorf("the serving certificate is for %s, not %s", names, want)
	}
}

const workerPod = `apiVersion: v1
kind: Pod
metadata: {name: on-worker, labels: {app: on-worker}}
spec:
  nodeName: ` + workerName + `
  terminationGracePeriodSeconds: 1
  containers:
  - name: hello
    image: muster.dev/workload:v1
    imagePullPolicy: IfNotPresent
    args: [serve]
`

func (k *kubeadmStory) pods(t *testing.T) {
	i := k.installation
	i.apply(workerPod)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/on-worker", "--timeout=60s")
	i.mustKubectl("logs", "on-worker")
	if got := i.mustKubectl("exec", "on-worker", "--", "/workload", "env"); !strings.Contains(got, "KUBERNETES_SERVICE_HOST") {
		t.Errorf("exec printed %q", got)
	}
	// The pod is in a slice of systemd's, as kubelet-config says.
	if slices := k.worker.must("systemctl", "list-units", "--no-pager", "--plain", "--no-legend", "--type=slice"); !strings.Contains(slices, "kubepods") {
		t.Errorf("no slice of pods among\n%s", slices)
	}
	i.mustKubectl("delete", "pod", "on-worker", "--timeout=60s")
}

// again takes the machine out and brings it in under its old name with the command that people type.
func (k *kubeadmStory) again(t *testing.T) {
	i := k.installation
	i.mustKubectl("delete", "node", workerName)
	k.worker.must("kubeadm", "reset", "--force")
	command := []string{"kubeadm", "join", "192.168.64.2:443", "--token", k.token(), "--discovery-token-ca-cert-hash", k.hash}
	if out, err := k.worker.Run(t.Context(), append(command, k.worker.KubeadmIgnored()...)...); err != nil || !strings.Contains(out, "This node has joined the cluster") {
		t.Fatalf("joining again: %v\n%s", err, out)
	}
	k.ready()
	// The shortest way, as docs/tokens.md has it.
	line := regexp.MustCompile(`(?m)^    kubeadm join --discovery-token-unsafe-skip-ca-verification .*$`).FindString(readPage(t, "tokens.md"))
	i.mustKubectl("delete", "node", workerName)
	k.worker.must("kubeadm", "reset", "--force")
	shortest := strings.Fields(regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`).ReplaceAllString(line, k.token()))
	if out, err := k.worker.Run(t.Context(), append(shortest, k.worker.KubeadmIgnored()...)...); err != nil || !strings.Contains(out, "This node has joined the cluster") {
		t.Fatalf("joining without a hash: %v\n%s", err, out)
	}
	k.ready()
	i.mustKubectl("delete", "node", workerName)
}
