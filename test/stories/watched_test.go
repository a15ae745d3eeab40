// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/test/host"
)

// watchDropIn has the host's own watch look ten times a second.
const watchDropIn = "/etc/systemd/system/muster-node-watch.service.d/90-often.conf"

// watched does to the host what its kubelet alone does not notice. Its own watch, as muster join runs it and in what
// systemd lets that do, looks more often than it would.
func (s *joinStory) watched(t *testing.T) {
	const cleared = "ExecStart=\n" // the unit's own commands
	line := "ExecStart=" + host.BinDir + "/muster node watch --interval=100ms --node-ip=" + ownHostAddress + "\n"
	s.must("mkdir", filepath.Dir(watchDropIn))
	if err := s.host.Write(watchDropIn, "[Service]\n"+cleared+line, 0o644); err != nil {
		t.Fatal(err)
	}
	restart := "systemctl daemon-reload && systemctl restart muster-node-watch"
	s.must("sh", "-c", restart)
	defer func() {
		if t.Failed() {
			out, err := s.host.Run(t.Context(), "journalctl", "--no-pager", "--output=cat", "--unit=muster-node-watch")
			t.Logf("node watch:\n%s%v", out, err)
		}
		s.must("sh", "-c", "rm -r "+filepath.Dir(watchDropIn)+" && "+restart)
	}()
	for _, step := range []struct {
		name string
		run  func(*joinStory, *testing.T)
	}{
		{"a rotation that was killed half way", (*joinStory).halfRotated},
		{"other authorities", (*joinStory).otherAuthorities},
		{"another address", (*joinStory).otherAddress},
		{"a client certificate that expired while the host slept", (*joinStory).slept},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(s.in(t), t) }) {
			return
		}
	}
}

// noticed waits until the watch tells of something, in a text and what to do about it.
func (s *joinStory) noticed(code string, texts ...string) {
	s.installation.t.Helper()
	s.installation.eventually("notice "+code, func() error {
		raw, err := s.host.Run(s.installation.t.Context(), "cat", "/run/muster/notices.json")
		if err != nil {
			return err
		}
		var notices []struct{ Code, Text, Fix string }
		if err := json.Unmarshal([]byte(raw), &notices); err != nil {
			return err
		}
		for _, n := range notices {
			for _, text := range texts {
				if n.Code == code && !strings.Contains(n.Text+" "+n.Fix, text) {
					return fmt.Errorf("%q is not in %+v", text, n)
				}
			}
			if n.Code == code {
				return nil
			}
		}
		return fmt.Errorf("there is %s", raw)
	})
}

// allIsWell waits until the watch has nothing to tell, and the kubelet answers for its pods.
func (s *joinStory) allIsWell() {
	s.installation.t.Helper()
	s.installation.eventually("no notices, and logs", func() error {
		raw, err := s.host.Run(s.installation.t.Context(), "sh", "-c", "cat /run/muster/notices.json 2>/dev/null || echo []")
		if err == nil && strings.TrimSpace(raw) != "[]" {
			err = errors.New(raw)
		}
		if err == nil {
			_, err = s.installation.kubectl("logs", "on-own-host")
		}
		return err
	})
}

// halfRotated leaves what a kubelet leaves that is killed between removing its link and renaming the next one.
func (s *joinStory) halfRotated(*testing.T) {
	s.must("sh", "-c", "cd /var/lib/kubelet/pki && mv kubelet-client-current.pem kubelet-client-updated.pem && systemctl kill --signal=KILL kubelet")
	s.installation.eventually("the link is back", func() error {
		_, err := s.host.Run(s.installation.t.Context(), "test", "-L", "/var/lib/kubelet/pki/kubelet-client-current.pem")
		return err
	})
	s.allIsWell()
}

// otherAuthorities has the cluster publish a stranger beside its own authority, then one that its own vouches for, and
// then only the stranger, who does not vouch for its API server.
func (s *joinStory) otherAuthorities(t *testing.T) {
	i := s.installation
	published := i.mustKubectl("-n", "kube-public", "get", "configmap", "cluster-info", "-o", "jsonpath={.data.kubeconfig}")
	own := i.mustKubectl("get", "configmap", "kube-root-ca.crt", "-o", `jsonpath={.data.ca\.crt}`) + "\n"
	other := i.mustKubectl("-n", "kube-system", "get", "configmap", "extension-apiserver-authentication", "-o", `jsonpath={.data.requestheader-client-ca-file}`) + "\n"
	publish := func(authorities string) {
		t.Helper()
		config, err := clientcmd.Load([]byte(published))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range config.Clusters {
			c.CertificateAuthorityData = []byte(authorities)
		}
		changed, err := clientcmd.Write(*config)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := json.Marshal(map[string]any{"data": map[string]string{"kubeconfig": string(changed)}})
		if err != nil {
			t.Fatal(err)
		}
		i.mustKubectl("-n", "kube-public", "patch", "configmap", "cluster-info", "--type=merge", "--patch="+string(patch))
	}
	trusted := func(want int) {
		t.Helper()
		i.eventually(fmt.Sprintf("the host trusts %d authorities", want), func() error {
			if got := strings.Count(s.must("cat", "/etc/kubernetes/pki/ca.crt"), "BEGIN CERTIFICATE"); got != want {
				return fmt.Errorf("it trusts %d", got)
			}
			return nil
		})
	}
	kubelet := s.must("systemctl", "show", "--property=MainPID", "kubelet")
	publish(own + other)
	s.noticed("Authorities", "nobody vouches for CN=")
	trusted(1)
	publish(own + i.nextAuthority())
	trusted(2)
	i.eventually("the kubelet starts again", func() error {
		if s.must("systemctl", "show", "--property=MainPID", "kubelet") == kubelet {
			return errors.New("it has not")
		}
		return nil
	})
	s.allIsWell()
	publish(other)
	s.noticed("Authorities", "they do not verify the API server itself")
	trusted(2)
	publish(own)
	trusted(1)
	s.allIsWell()
}

// nextAuthority is another authority, signed by the cluster's own.
func (i *installation) nextAuthority() string {
	i.t.Helper()
	dir := filepath.Join(i.cluster().PKI(), "cluster")
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem"))
	if err != nil {
		i.t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "the next authority"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
	}, own.Leaf, key.Public(), own.PrivateKey)
	if err != nil {
		i.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// otherAddress gives the host another address than the kubelet was told to use, and its own again.
func (s *joinStory) otherAddress(t *testing.T) {
	const other = "172.31.0.250"
	if out, err := s.host.Run(t.Context(), "sh", "-c", `set -e
set -- $(ip -oneline -4 address show to `+ownHostAddress+`)
echo "$2 $4" >/tmp/address
ip route >/tmp/routes
ip address delete "$4" dev "$2"
ip address add `+other+`/18 dev "$2"`); err != nil {
		t.Fatal(err, out)
	}
	s.noticed("Address", "the kubelet was told to use "+ownHostAddress+" (--node-ip), and the machine has", other, "register the new address")
	if out, err := s.host.Run(t.Context(), host.BinDir+"/muster", "node", "certs"); !strings.Contains(out, "the kubelet was told to use "+ownHostAddress) {
		t.Errorf("muster node certs does not tell: %s%v", out, err)
	}
	if out, err := s.host.Run(t.Context(), "sh", "-c", `set -e
read -r device address </tmp/address
ip address delete `+other+`/18 dev "$device"
ip address add "$address" dev "$device"
while read -r route; do ip route replace $route; done </tmp/routes
rm /tmp/address /tmp/routes`); err != nil {
		t.Fatal(err, out)
	}
	s.allIsWell()
}

// slept has the host's client certificate expire, as of one that slept for too long. No token is left on it, so it is
// told what to do. By a token that anybody might have it comes in when a person says so; by one that was made for it to
// join again, without.
func (s *joinStory) slept(t *testing.T) {
	s.expire(t)
	s.noticed("Expired", "a kubelet cannot renew an expired one", "there is no bootstrap token to join with again",
		"muster token create --node-name "+ownHostName+" --rejoin", "muster join")
	if out, err := s.host.Run(t.Context(), host.BinDir+"/muster", "node", "certs"); err == nil || !strings.Contains(out, "Expired") {
		t.Errorf("muster node certs is content: %s", out)
	}
	token := s.token()
	server := strings.TrimSpace(s.must("sed", "-n", "s/.*server: //p", "/var/lib/kubelet/kubeconfig"))
	if err := s.host.Write(bootstrapKubeconfig, fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %s, certificate-authority: /etc/kubernetes/pki/ca.crt}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
users: [{name: u, user: {token: %s}}]
`, server, token), 0o600); err != nil {
		t.Fatal(err)
	}
	s.noticed("Expired", "so it asks for a certificate by it", "muster csr approve")
	request := ""
	s.installation.eventually("the kubelet asks by the token", func() (err error) {
		if request = s.installation.mustKubectl("get", "csr", "-o", `jsonpath={.items[?(@.spec.username=="system:bootstrap:`+token[:6]+`")].metadata.name}`); request == "" {
			err = errors.New("it does not")
		}
		return err
	})
	s.installation.waits(request, "existing-node")
	s.installation.muster("csr", "approve", request, "--reason", "it slept")
	s.backAgain(t)

	s.expire(t)
	s.noticed("Expired", "there is no bootstrap token to join with again")
	s.installation.recordExpired(ownHostName)
	token = s.token("--rejoin")
	s.signed(token, true)
	out, err := s.join(t.Context(), token, "--ca-cert-hash", s.hash)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("joined again:\n%s", out)
	s.backAgain(t)
}

const bootstrapKubeconfig = "/var/lib/kubelet/bootstrap-kubeconfig"

// expire stops the kubelet, puts an expired certificate in place of its own, and starts it.
func (s *joinStory) expire(t *testing.T) {
	t.Helper()
	s.must("systemctl", "stop", "kubelet")
	const file = "/var/lib/kubelet/pki/kubelet-client-2026-01-01-00-00-00.pem"
	if err := s.host.Write(file, s.installation.expired(ownHostName, x509.ExtKeyUsageClientAuth), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("ln", "-sfn", file, "/var/lib/kubelet/pki/kubelet-client-current.pem")
	s.must("systemctl", "start", "kubelet")
}

// backAgain waits until the host is a node as it was, and the token is gone.
func (s *joinStory) backAgain(t *testing.T) {
	t.Helper()
	s.installation.eventually("the token is gone", func() error {
		_, err := s.host.Run(t.Context(), "test", "!", "-e", bootstrapKubeconfig)
		return err
	})
	s.installation.eventually("the node is Ready", func() error {
		if got := s.installation.mustKubectl("get", "node", ownHostName, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`); got != "True" {
			return fmt.Errorf("Ready is %q", got)
		}
		return nil
	})
	s.allIsWell()
}

// recordExpired has the register of issued certificates say of those of a node what their expired one does: that time
// has passed.
func (i *installation) recordExpired(node string) {
	i.t.Helper()
	i.recorded()
	line := regexp.MustCompile(`(?m)^(.* node=` + regexp.QuoteMeta(node) + ` .* to=)\S+`)
	changed := false
	for name := range strings.FieldsSeq(i.mustKubectl("-n", "muster-system", "get", "configmaps", "-l", "certificates.muster.dev/register=true", "-o", "jsonpath={.items[*].metadata.name}")) {
		before := i.mustKubectl("-n", "muster-system", "get", "configmap", name, "-o", "jsonpath={.data.certificates}")
		after := line.ReplaceAllString(before, "${1}"+time.Now().UTC().Add(-time.Minute).Format(time.RFC3339))
		if after == before {
			continue
		}
		changed = true
		patch, err := json.Marshal(map[string]any{"data": map[string]string{"certificates": after + "\n"}})
		if err != nil {
			i.t.Fatal(err)
		}
		i.mustKubectl("-n", "muster-system", "patch", "configmap", name, "--type=merge", "--patch", string(patch))
	}
	if !changed {
		i.t.Fatalf("no certificate of %s is on record", node)
	}
	i.kill("certificate-controller") // its successor reads the register anew
}

// recorded waits until every certificate that was issued is on record: what is issued is written a little later, and by
// a successor if it must.
func (i *installation) recorded() {
	i.t.Helper()
	i.eventually("all that was issued is on record", func() error {
		issued, err := i.kubectl("get", "csr", "-o", `jsonpath={range .items[?(@.status.certificate)]}{.metadata.uid}{"\n"}{end}`)
		if err != nil {
			return err
		}
		records, err := i.kubectl("-n", "muster-system", "get", "configmaps", "-l", "certificates.muster.dev/register=true", "-o", "jsonpath={.items[*].data.certificates}")
		if err != nil {
			return err
		}
		for uid := range strings.Lines(issued) {
			if uid = strings.TrimSpace(uid); !strings.Contains(records, "uid="+uid) {
				return fmt.Errorf("request %s is not", uid)
			}
		}
		return nil
	})
}

// expired is a certificate of a node that was good until an hour ago, by the authority that signs for kubelets, and its
// key.
func (i *installation) expired(node string, usage x509.ExtKeyUsage, names ...string) string {
	i.t.Helper()
	path := filepath.Join(i.cluster().PKI(), "kubelet", "kubelet-1.pem")
	authority, err := tls.LoadX509KeyPair(path, path)
	if err != nil {
		i.t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: nodeSubject(node), DNSNames: names,
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		i.t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		i.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) + string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}))
}
