// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/test/host"
)

const (
	workerName    = "worker-1"
	workerAddress = "172.31.0.200"
)

// kubeadmJoin brings a machine that muster did not make into a cluster by kubeadm, as upstream built it and as people
// know it.
func kubeadmJoin(t *testing.T, i *installation, hash string) {
	k := kubeadmStory{newGuest(t, i, hash, workerName, workerAddress, host.KubeadmPrograms()...)}
	if err := k.host.InstallKubeadm(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		run  func(kubeadmStory, *testing.T)
	}{
		{"the pin must be right", kubeadmStory.wrongPins},
		{"the token must be there still", kubeadmStory.deadTokens},
		{"a server that is down is waited for and then the machine becomes a node", kubeadmStory.serverComesBack},
		{"certificates are where upstream's kubelet leaves them", kubeadmStory.certificates},
		{"pods run and logs and exec go over the serving certificate", kubeadmStory.pods},
		{"after kubeadm reset the plain command line joins it again", kubeadmStory.again},
		{"with a clock that is behind it does not join, and with one that is ahead it does", kubeadmStory.wrongClock},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(kubeadmStory{k.in(t)}, t) }) {
			return
		}
	}
}

type kubeadmStory struct{ guest }

// join runs kubeadm as its documentation says, behind what is to run it. patience is how long discovery may take.
func (k kubeadmStory) join(ctx context.Context, token, hash string, patience time.Duration, runner ...string) (string, error) {
	command, err := k.host.KubeadmCommand(host.KubeadmJoin{Endpoint: privateServer, Token: token, Hash: hash, Discovery: patience})
	if err != nil {
		return "", err
	}
	return k.host.Run(ctx, append(runner, command...)...)
}

// discoveryPatience is long enough for kubeadm to ask, to sign and to judge what it is answered.
const discoveryPatience = 3 * time.Second

// refused runs kubeadm join, which must fail in discovery for a reason, and leave the machine as it was.
func (k kubeadmStory) refused(t *testing.T, token, hash, reason string, runner ...string) {
	t.Helper()
	out, err := k.join(t.Context(), token, hash, discoveryPatience, runner...)
	if err == nil {
		t.Fatalf("kubeadm joined:\n%s", out)
	}
	if !strings.Contains(err.Error(), reason) {
		t.Errorf("kubeadm does not say %q:\n%v", reason, err)
	}
	for _, file := range []string{"/etc/kubernetes/bootstrap-kubelet.conf", "/etc/kubernetes/pki/ca.crt", "/var/lib/kubelet/config.yaml"} {
		if _, err := k.host.Run(t.Context(), "test", "!", "-e", file); err != nil {
			t.Errorf("%s was written", file)
		}
	}
}

func (k kubeadmStory) wrongPins(t *testing.T) {
	token := k.token()
	k.signed(token, true) // kubeadm asks every five seconds
	const notPinned = "none of the public keys"
	k.refused(t, token, "sha256:"+strings.Repeat("0", 64), notPinned)
	// An authority that is the cluster's, too, but does not vouch for the API server.
	other := k.installation.mustKubectl("-n", "kube-system", "get", "configmap", "extension-apiserver-authentication", "-o", `jsonpath={.data.requestheader-client-ca-file}`)
	k.refused(t, token, pin(t, other), notPinned)
	id, _, _ := strings.Cut(token, ".")
	k.refused(t, id+"."+strings.Repeat("0", 16), k.hash, "failed to verify JWS signature")
}

func (k kubeadmStory) deadTokens(t *testing.T) {
	const unsigned = "could not find a JWS signature"
	deleted := k.token()
	k.signed(deleted, true)
	id, _, _ := strings.Cut(deleted, ".")
	k.installation.muster("token", "delete", id)
	k.signed(deleted, false)
	k.refused(t, deleted, k.hash, unsigned)
	k.refused(t, k.expiredToken(), k.hash, unsigned)
}

// serverComesBack runs kubeadm join while nothing answers at the API server's endpoint. Here, and only here, it may
// take half a minute until the node is Ready (a minute on a busy machine), and not 0.3 s: kube-controller-manager has
// found the API server away, and looks again after a time that doubles (client-go, tools/cache/reflector.go); and a
// server that has just been started refuses all that asked meanwhile, since it has not read yet what they may do, and
// they double their time once more. So the pods' addresses are late ("cni plugin not initialized"). The certificate is
// not, as the certificate controller asks every second (package steady): a kubelet without one is told that it is
// "Unauthorized", and if it has not found its Node within a second tries to publish its CSINode after 3 seconds, and
// then after 19 (pkg/volume/csi/csi_plugin.go, initBackoff).
func (k kubeadmStory) serverComesBack(t *testing.T) {
	token := k.token()
	k.signed(token, true)
	out := k.waitsForServer(func() (string, error) { return k.join(t.Context(), token, k.hash, 2*time.Minute) })
	if !strings.Contains(out, "This node has joined the cluster") {
		t.Errorf("kubeadm printed:\n%s", out)
	}
	k.installation.nodeIsReady(workerName)
}

func (k kubeadmStory) ready() {
	k.installation.t.Helper()
	k.installation.nodeIsReady(workerName)
}

func (k kubeadmStory) certificates(t *testing.T) {
	for _, name := range []string{"client", "server"} {
		link := "/var/lib/kubelet/pki/kubelet-" + name + "-current.pem"
		k.installation.eventually(link, func() error {
			_, err := k.host.Run(t.Context(), "test", "-L", link)
			return err
		})
		target := k.must("readlink", link)
		if !strings.HasPrefix(target, "/var/lib/kubelet/pki/kubelet-"+name+"-20") {
			t.Errorf("%s leads to %s", link, target)
		}
		if mode := k.must("stat", "--format=%a", target); mode != "600" {
			t.Errorf("%s has mode %s", target, mode)
		}
	}
	served := certificate(t, k.must("cat", "/var/lib/kubelet/pki/kubelet-server-current.pem"))
	names := fmt.Sprint(served.Subject.CommonName, served.DNSNames, served.IPAddresses)
	if want := fmt.Sprintf("system:node:%[1]s[%[1]s] [%[2]s]", workerName, workerAddress); names != want {
		t.Errorf("the serving certificate is for %s, not %s", names, want)
	}
}

func (k kubeadmStory) pods(t *testing.T) {
	i := k.installation
	k.pod("on-worker")
	if got := i.mustKubectl("exec", "on-worker", "--", "/workload", "env"); !strings.Contains(got, "KUBERNETES_SERVICE_HOST") {
		t.Errorf("exec printed %q", got)
	}
	// The pod is in a slice of systemd's, as kubelet-config says.
	if slices := k.must("systemctl", "list-units", "--no-pager", "--plain", "--no-legend", "--type=slice"); !strings.Contains(slices, "kubepods") {
		t.Errorf("no slice of pods among\n%s", slices)
	}
	i.mustKubectl("delete", "pod", "on-worker", "--timeout=60s")
}

// reset takes the machine out of the cluster.
func (k kubeadmStory) reset() {
	k.installation.t.Helper()
	k.installation.mustKubectl("delete", "node", workerName)
	k.must("kubeadm", "reset", "--force")
}

// again takes the machine out and brings it in under its old name with the command that people type.
func (k kubeadmStory) again(t *testing.T) {
	k.reset()
	token := k.token()
	k.signed(token, true)
	command := []string{"kubeadm", "join", privateServer, "--token", token, "--discovery-token-ca-cert-hash", k.hash}
	if out, err := k.host.Run(t.Context(), append(command, k.host.KubeadmIgnored()...)...); err != nil || !strings.Contains(out, "This node has joined the cluster") {
		t.Fatalf("joining again: %v\n%s", err, out)
	}
	k.ready()
	k.reset()
	// The shortest way, as docs/tokens.md has it.
	line := regexp.MustCompile(`(?m)^    kubeadm join --discovery-token-unsafe-skip-ca-verification .*$`).FindString(readPage(t, "tokens.md"))
	token = k.token()
	k.signed(token, true)
	shortest := strings.Fields(regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`).ReplaceAllString(line, token))
	if out, err := k.host.Run(t.Context(), append(shortest, k.host.KubeadmIgnored()...)...); err != nil || !strings.Contains(out, "This node has joined the cluster") {
		t.Fatalf("joining without a hash: %v\n%s", err, out)
	}
	k.ready()
	k.reset()
}
