// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/test/host"
)

// otherTokens joins with a token that is good for another host: the request is denied, and the host says by which rule
// and why.
func (s *joinStory) otherTokens(t *testing.T) {
	out, _ := s.installation.muster("token", "create", "--node-name", "worker-9", "--address", "172.31.0.219")
	token := strings.TrimSpace(out)
	s.signed(token, true)
	out, err := s.join(t.Context(), token, "--ca-cert-hash", s.hash)
	if err == nil {
		t.Fatalf("joined with another's token:\n%s", out)
	}
	for _, want := range []string{"was refused: ", "the kubelet was stopped", "muster token create --node-name " + ownHostName + " --address " + ownHostAddress} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
	t.Logf("denied: %v", err)
	// A kubelet that is stopped while it starts may call that a failure.
	if state, _ := s.host.Run(t.Context(), "systemctl", "is-active", "kubelet"); strings.TrimSpace(state) != "inactive" && strings.TrimSpace(state) != "failed" {
		t.Errorf("the kubelet is %s", state)
	}
	if nodes := s.installation.mustKubectl("get", "nodes", "-o", "name"); strings.Contains(nodes, ownHostName) {
		t.Errorf("nodes: %s", nodes)
	}
	if out, err := s.host.Run(t.Context(), host.BinDir+"/muster", "leave"); err != nil {
		t.Fatal(err, out)
	}
	s.unchanged(t, "after a join that was denied, and leave")
}

// discoveryFile says where the cluster is, and whom to trust.
func discoveryFile(authority string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: joined
contexts: [{name: joined, context: {cluster: joined}}]
clusters: [{name: joined, cluster: {server: "https://%s", certificate-authority-data: %s}}]
`, privateServer, base64.StdEncoding.EncodeToString([]byte(authority)))
}

// joinByFile runs muster join with a file that says where the cluster is, which it removes again.
func (s *joinStory) joinByFile(t *testing.T, authority, token string, args ...string) (string, error) {
	t.Helper()
	const file = "/root/cluster.conf"
	if err := s.host.Write(file, discoveryFile(authority), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := s.host.RunWith(t.Context(), token+"\n", append([]string{host.BinDir + "/muster", "join", "--discovery-file", file, "--token", "-", "--timeout", "60s"}, args...)...)
	if out, err := s.host.Run(t.Context(), "rm", file); err != nil {
		t.Fatal(err, out)
	}
	return out, err
}

// otherServer joins by a file that names an authority that does not vouch for the server that answers, as when somebody
// else's stands in its place: it is not given the token.
func (s *joinStory) otherServer(t *testing.T) {
	other := s.installation.mustKubectl("-n", "kube-system", "get", "configmap", "extension-apiserver-authentication", "-o", `jsonpath={.data.requestheader-client-ca-file}`)
	out, err := s.joinByFile(t, other, s.token(), "--timeout", "8s")
	if err == nil || !strings.Contains(err.Error(), "Error: ") || !strings.Contains(err.Error(), "authority") {
		t.Errorf("joined a server of another authority: %v\n%s", err, out)
	}
	t.Logf("refused: %v", err)
	s.unchanged(t, "after a server of another authority")
}

// besideContainerd joins a host on which containerd runs as its distribution's unit: it is used, left alone, and goes
// on when the host leaves. The cluster is known by a file, and runs kube-proxy itself.
func (s *joinStory) besideContainerd(t *testing.T) {
	beside := &joinStory{guest: newGuest(t, s.installation, s.hash, "worker-3", "172.31.0.211", host.ContainerdPrograms()...)}
	h := beside.host
	if err := h.InstallContainerd(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Files that containerd itself keeps of images and containers do not count.
	everything := func() string {
		var b strings.Builder
		for line := range strings.Lines(beside.everything(t)) {
			if !strings.Contains(line, "/var/lib/containerd/") && !strings.Contains(line, "/run/containerd/") && !strings.Contains(line, "/opt/containerd") {
				b.WriteString(line)
			}
		}
		return b.String()
	}
	containerd := func() string {
		out, err := h.Run(t.Context(), "sh", "-c", "systemctl show --property=MainPID,FragmentPath,UnitFileState containerd; sha256sum /etc/containerd/config.toml; ctr -n k8s.io images ls -q 2>/dev/null; ctr -n k8s.io containers ls -q 2>/dev/null")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	files, state := everything(), containerd()
	ca := beside.installation.mustKubectl("get", "configmap", "kube-root-ca.crt", "-o", `jsonpath={.data.ca\.crt}`)
	out, err := beside.joinByFile(t, ca, beside.token(), "--skip-kube-proxy")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("joined:\n%s", out)
	if out, err := h.Run(t.Context(), "sh", "-c", "ls /etc/systemd/system /etc/kubernetes /usr/local/bin"); err != nil || strings.Contains(out, "kube-proxy") {
		t.Errorf("a kube-proxy was installed: %v\n%s", err, out)
	}
	beside.pod("beside")
	out, err = h.Run(t.Context(), host.BinDir+"/muster", "leave")
	if err != nil {
		t.Fatal(err, out)
	}
	t.Logf("left:\n%s", out)
	if after := containerd(); after != state {
		t.Errorf("containerd is not what it was:\n%s", differences(state, after))
	}
	if after := everything(); after != files {
		t.Errorf("the host is not what it was:\n%s", differences(files, after))
	}
	beside.installation.mustKubectl("delete", "node", h.Name)
}
