// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// requestOf is a request for a certificate, as a person or a program makes it, with its key in PEM.
func requestOf(t *testing.T, template x509.CertificateRequest) (request, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}

func (i *installation) request(name, signer string, request []byte, usages ...string) {
	i.t.Helper()
	i.apply(fmt.Sprintf(`apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: %s}
spec:
  request: %s
  signerName: %s
  expirationSeconds: 864000
  usages: ["%s"]
`, name, base64.StdEncoding.EncodeToString(request), signer, strings.Join(usages, `", "`)))
}

func (i *installation) certificate(name string) []byte {
	i.t.Helper()
	var encoded string
	i.eventually("a certificate for "+name, func() error {
		if encoded = i.mustKubectl("get", "csr", name, "-o", "jsonpath={.status.certificate}"); encoded == "" {
			return fmt.Errorf("there is none: %s", i.mustKubectl("get", "csr", name, "-o", "jsonpath={.status.conditions}"))
		}
		return nil
	})
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		i.t.Fatal(err)
	}
	return raw
}

// requestsExplained asks for certificates as people do, good ones and bad ones, and wants to be told what came of each.
func requestsExplained(t *testing.T, i *installation) {
	request, key := requestOf(t, x509.CertificateRequest{Subject: pkix.Name{CommonName: "vip", Organization: []string{"payments"}}})
	i.request("vip", "kubernetes.io/kube-apiserver-client", request, "client auth")
	i.eventually("the request is left to a person", func() error {
		out, _ := i.muster("csr", "explain", "vip")
		if !strings.Contains(out, "manual-approval") {
			return fmt.Errorf("explain says:\n%s", out)
		}
		return nil
	})
	i.muster("csr", "approve", "vip", "--reason", "ticket 4711")
	dir := t.TempDir()
	crt, keyFile := filepath.Join(dir, "vip.crt"), filepath.Join(dir, "vip.key")
	for path, content := range map[string][]byte{crt: i.certificate("vip"), keyFile: key} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := i.mustKubectl("--client-certificate", crt, "--client-key", keyFile, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}"); !strings.HasPrefix(got, `vip ["payments"`) {
		t.Errorf("with the certificate of vip one is %s", got)
	}

	// Nobody becomes a node or the control plane that way, whoever approves.
	bad, _ := requestOf(t, x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + i.nodes()[0]}})
	i.request("bad", "kubernetes.io/kube-apiserver-client", bad, "client auth")
	app, _ := requestOf(t, x509.CertificateRequest{Subject: pkix.Name{CommonName: "app"}, DNSNames: []string{"kubernetes.default.svc"}})
	i.request("app", "beta.eks.amazonaws.com/app-serving", app, "server auth")
	i.muster("csr", "approve", "bad", "app", "--reason", "in a hurry")
	for name, rule := range map[string]string{"bad": "identity-reserved", "app": "name-reserved"} {
		i.eventually(name+" is refused", func() error {
			out, _ := i.muster("csr", "list", "-o", "wide")
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, name+" ") && strings.Contains(line, "Failed") && strings.Contains(line, rule) {
					return nil
				}
			}
			return fmt.Errorf("the list says:\n%s", out)
		})
	}

	var issued []struct{ Owner, Machine, Request string }
	i.eventually("certificates are on record", func() error {
		out, _ := i.muster("certs", "issued", "-o", "json")
		if err := json.Unmarshal([]byte(out), &issued); err != nil {
			t.Fatal(err)
		}
		if len(issued) != 3 { // a certificate of each node and of the person
			return fmt.Errorf("%d are on record: %s", len(issued), out)
		}
		return nil
	})
	for _, c := range issued {
		if (c.Owner == "vip") != (c.Machine == "") {
			t.Errorf("%s on machine %q", c.Owner, c.Machine)
		}
	}
}

func (i *installation) nodes() []string {
	i.t.Helper()
	return strings.Fields(i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
}

// rotationBegins begins to replace the authority of kubelets' certificates. How that ends is told by a test of its own,
// which takes a quarter of an hour (make soak): here it goes on while all that follows happens, which it must not
// disturb.
func rotationBegins(t *testing.T, i *installation) {
	i.muster("certs", "rotate", "kubelet-ca", "--no-wait")
	i.eventually("two authorities are trusted while one signs", func() error {
		out, _ := i.muster("certs")
		for _, want := range []string{"kubelet-1", "kubelet-2", "signs", "trusted"} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("no %q in:\n%s", want, out)
			}
		}
		return nil
	})
	i.eventually("both bundles are published", func() error {
		for _, name := range []string{"muster-kubelet-client-ca", "muster-kubelet-serving-ca"} {
			bundle := i.mustKubectl("-n", "kube-system", "get", "configmap", name, "-o", `jsonpath={.data.ca\.crt}`)
			if n := strings.Count(bundle, "BEGIN CERTIFICATE"); n != 2 {
				return fmt.Errorf("%s holds %d certificates", name, n)
			}
		}
		return nil
	})
}
