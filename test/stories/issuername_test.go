// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"muster.dev/muster/internal/plane/issuer"
)

// asksIssuer is a pod whose programs trust what every pod of Kubernetes does: the authority of its cluster.
const asksIssuer = `apiVersion: v1
kind: Pod
metadata: {name: asks}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: asks
    image: muster.dev/workload:v1
    imagePullPolicy: IfNotPresent
    args: [serve]
    env: [{name: SSL_CERT_FILE, value: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt}]
`

// TestIssuerByName has the documents of an issuer with a name read where it leads: in pods, on machines and on the
// host.
//
//story:about plane/issuer
func TestIssuerByName(t *testing.T) {
	t.Parallel()
	const host = "oidc.example.com"
	i := newInstallation(t)
	i.muster("up", "--nodes", "1", "--issuer-host", host)
	i.ready()
	keys := documentsByName(t, i, host)
	if got, err := i.kubectl("exec", "asks", "--", "/workload", "fetch", "https://sts.us-east-1.amazonaws.com/"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("the cluster's authority has signed for STS, too: %s, %v", got, err)
	}

	// On the host the name leads where its DNS or /etc/hosts says: here, to the account's address.
	at, err := issuer.ReadEndpoint(i.dir.Issuers())
	if err != nil {
		t.Fatal(err)
	}
	var account struct {
		Address string `json:"address"`
	}
	raw, err := os.ReadFile(i.dir.Account())
	if err := errors.Join(err, json.Unmarshal(raw, &account)); err != nil {
		t.Fatal(err)
	}
	v := newVerifierBy(t, i, issuerOf(t, i, host), func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(account.Address, strconv.Itoa(at.Port)))
	})
	if strings.TrimSpace(string(v.keys)) != keys {
		t.Errorf("the host reads the keys %s, want %s", v.keys, keys)
	}
	if got := v.status("https://"+host+"/id/"+strings.Repeat("A", 32)+"/keys", ""); got != http.StatusNotFound {
		t.Errorf("the keys of no cluster: %d", got)
	}
}

// TestIssuerByHostName makes an account without a word about its issuers. They have this host's own name where that
// leads to a loopback address, and pods, machines and the host read the documents by it. Elsewhere they have an
// address, and people are told.
//
//story:about plane/issuer
func TestIssuerByHostName(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.named = true
	_, _, refused := issuer.ThisHost(t.Context())
	_, talk := i.muster("up", "--nodes", "1")
	i.ready()
	at, err := issuer.ReadEndpoint(i.dir.Issuers())
	if err != nil {
		t.Fatal(err)
	}
	status, _ := i.muster("status")
	const unreachable = "cannot reach the issuer of service account tokens"
	if !at.Loopback.IsValid() {
		if refused == nil { // another account has taken the port of the name since
			_, _, refused = issuer.ThisHost(t.Context())
		}
		t.Logf("the name of THIS host does not do (%v): what is tested is that people are told", refused)
		if refused == nil || !strings.Contains(talk, "Pods "+unreachable+": this host's name ") || !strings.Contains(status, "Note: pods "+unreachable) {
			t.Errorf("the name was refused for %v; muster up said:\n%s\nand muster status:\n%s", refused, talk, status)
		}
		issuerOf(t, i, "127.")
		return
	}
	if strings.Contains(talk, unreachable) || strings.Contains(status, unreachable) {
		t.Errorf("issuers are at %+v; muster up said:\n%s\nand muster status:\n%s", at, talk, status)
	}
	keys := documentsByName(t, i, at.Host)
	v := newVerifier(t, i, issuerOf(t, i, at.Host))
	if strings.TrimSpace(string(v.keys)) != keys {
		t.Errorf("the host reads the keys %s, want %s", v.keys, keys)
	}
	t.Logf("issuers are at %s, which pods, machines and this host find", at.Host)
}

// issuerOf is the URL of the cluster's issuer, whose host begins as it should.
func issuerOf(t *testing.T, i *installation, host string) string {
	t.Helper()
	out, _ := i.muster("get", "clusters", "-o", "json")
	_, rest, _ := strings.Cut(out, `"issuer": "`)
	url, _, _ := strings.Cut(rest, `"`)
	if !strings.HasPrefix(url, "https://"+host) || !strings.Contains(url, "/id/") {
		t.Fatalf("the issuer is %s, want one at %s", url, host)
	}
	return url
}

// documentsByName has a pod and its machine read the documents of an issuer by the name in its URL, and returns the
// keys. The pod goes on.
func documentsByName(t *testing.T, i *installation, host string) string {
	t.Helper()
	url := issuerOf(t, i, host+"/")
	keys, _ := i.muster("oidc", "jwks")
	keys = strings.TrimSpace(keys)
	i.apply(asksIssuer)
	i.mustKubectl("wait", "pod/asks", "--for=condition=Ready", "--timeout=60s")

	// As upstream's conformance test of issuer discovery does: by the cluster's authority alone.
	var found struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal([]byte(i.mustKubectl("exec", "asks", "--", "/workload", "fetch", url+"/.well-known/openid-configuration")), &found); err != nil || found.Issuer != url {
		t.Fatalf("%+v, %v", found, err)
	}
	if got := i.mustKubectl("exec", "asks", "--", "/workload", "fetch", found.Keys); strings.TrimSpace(got) != keys {
		t.Errorf("a pod reads the keys %s, want %s", got, keys)
	}
	machine := i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
	if got, talk := i.muster("exec", machine, "--", "curl", "-sS", "--cacert", "/etc/aws/ca.pem", found.Keys); strings.TrimSpace(got) != keys {
		t.Errorf("a machine reads the keys %s (%s), want %s", got, talk, keys)
	}
	return keys
}
