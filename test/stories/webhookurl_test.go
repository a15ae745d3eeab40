// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/platform/host"
)

// byURL is a webhook that users name by URL, which decides about ConfigMaps of a namespace of its own.
const byURL = `{apiVersion: v1, kind: Namespace, metadata: {name: by-url}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: by-url}
webhooks:
- name: by-url.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 10
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: by-url}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  clientConfig: {url: %q, caBundle: %s}
`

// conversion is a kind whose versions a webhook converts, and an object of it.
const conversion = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: doors.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: doors, singular: door, kind: Door}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: %q, caBundle: %s}}}
`

// webhookSays names a webhook by URL, makes an object that it decides about, and waits until that fails for a reason.
func (i *installation) webhookSays(url string, ca []byte, want string, context ...string) {
	i.t.Helper()
	i.mustRead(fmt.Sprintf(byURL, url, base64.StdEncoding.EncodeToString(ca)), append([]string{"apply", "-f", "-"}, context...)...)
	i.eventually("the webhook "+url+": "+want, func() error {
		_, err := i.kubectl(append([]string{"-n", "by-url", "create", "configmap", "asked", "--dry-run=server"}, context...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("it says: %w", err)
		}
		return nil
	})
}

// read has kubectl read documents: an ordinary user can do so where files are root's.
func (i *installation) read(documents string, args ...string) error {
	cmd := i.program(i.t.Context(), "kubectl", args...)
	cmd.Env, cmd.SysProcAttr, cmd.Stdin = i.environment(), i.as, strings.NewReader(documents)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (i *installation) mustRead(documents string, args ...string) {
	i.t.Helper()
	if err := i.read(documents, args...); err != nil {
		i.t.Fatal(err)
	}
}

// ports are the cluster's and the account's on the host's loopback.
func (i *installation) ports() (own portplan.Ports, account portplan.AccountPorts) {
	i.t.Helper()
	for path, into := range map[string]any{i.cluster().Ports(): &own, i.dir.Ports(): &account} {
		raw, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(raw, into)
		}
		if err != nil {
			i.t.Fatal(err)
		}
	}
	return own, account
}

func (i *installation) clusterCA() []byte {
	i.t.Helper()
	ca, err := os.ReadFile(filepath.Join(i.cluster().PKI(), "cluster", "ca.pem"))
	if err != nil {
		i.t.Fatal(err)
	}
	return ca
}

// loopbackIsRefused names everything that answers on the host's loopback as a webhook: nothing is reached but the ports
// that the API server's own flags name, and these want a certificate that it shows to no webhook of a user's.
func loopbackIsRefused(t *testing.T, i *installation, reason string) {
	own, account := i.ports()
	ca := i.clusterCA()
	for what, port := range map[string]int{"the front of its own API server": own.Published, "its own API server": own.APIServer0, "etcd": own.Etcd, "the management plane": account.Management, "STS and IAM": account.Identity, "the registry": account.Registry} {
		i.t.Logf("a webhook at the port of %s", what)
		i.webhookSays(fmt.Sprintf("https://127.0.0.1:%d/", port), ca, reason)
	}
	for address := range strings.SplitSeq(i.ownWebhooks(), ",") {
		if err := i.withoutCertificate(address); err == nil || !strings.Contains(err.Error(), "certificate required") {
			t.Errorf("%s answers a client without a certificate: %v", address, err)
		}
	}
	for _, port := range []int{own.Authenticator, own.CertificateControllerAuthorization} {
		i.webhookSays(fmt.Sprintf("https://127.0.0.1:%d/", port), ca, "tls: certificate required")
		i.webhookSays(fmt.Sprintf("https://localhost:%d/", port), ca, "403 Forbidden")
	}
	i.mustRead(fmt.Sprintf(conversion, fmt.Sprintf("https://127.0.0.1:%d/", account.Management), base64.StdEncoding.EncodeToString(ca)), "apply", "-f", "-")
	i.eventually("an object is converted by nobody", func() error {
		err := i.read("{apiVersion: example.com/v2, kind: Door, metadata: {name: front}}", "create", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("it says: %w", err)
		}
		return nil
	})
}

// ownWebhooks are the ports of the host that the API server may dial, as the proxy is told.
func (i *installation) ownWebhooks() string {
	i.t.Helper()
	for _, argument := range i.mustCommandLine(component.WebhookProxy) {
		if own, ok := strings.CutPrefix(argument, "--own="); ok {
			return own
		}
	}
	i.t.Fatal("the proxy of webhooks is told no ports")
	return ""
}

// withoutCertificate speaks TLS to a port of the host, and reads whether that lets it in: by TLS 1.3 a client hears of
// a refusal after its own handshake.
func (i *installation) withoutCertificate(address string) error {
	dial := func() (net.Conn, error) { return new(net.Dialer).DialContext(i.t.Context(), "tcp4", address) }
	if i.host != nil {
		namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", i.host.pid))
		if err != nil {
			return err
		}
		defer func() { _ = namespace.Close() }()
		here := dial
		dial = func() (connection net.Conn, err error) {
			err = host.InNetwork(namespace, func() (err error) {
				connection, err = here()
				return err
			})
			return connection, err
		}
	}
	connection, err := dial()
	if err != nil {
		return err
	}
	secure := tls.Client(connection, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	defer func() { _ = secure.Close() }()
	if _, err := fmt.Fprint(secure, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return err
	}
	_, err = secure.Read(make([]byte, 1))
	return err
}

// webhookIn serves a webhook in a namespace until the test ends. It allows or refuses everything, and says who asked.
func webhookIn(t *testing.T, namespace *os.File, address string, allows bool) (url string, ca []byte) {
	t.Helper()
	var listener net.Listener
	if err := host.InNetwork(namespace, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp4", net.JoinHostPort(address, "9443"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		from := netip.MustParseAddrPort(r.RemoteAddr).Addr()
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":%t,"status":{"message":"asked by %s"}}}`, review.Request.UID, allows, from)
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	pair := certificateOf(t, address)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return "https://" + listener.Addr().String() + "/", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
}

// certificateOf is a certificate for an address that vouches for itself.
func certificateOf(t *testing.T, address string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhook"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(address)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// endpoint is the address of the cluster's API server in the VPC.
func (i *installation) endpoint() string {
	i.t.Helper()
	url := i.mustKubectl("--context", "muster-management", "-n", "muster", "get", "cluster", "muster", "-o", "jsonpath={.status.privateEndpoint}")
	url = strings.TrimPrefix(url, "https://")
	if address, _, err := net.SplitHostPort(url); err == nil {
		return address
	}
	return url
}

// webhooksInTheVPC names the pod of a machine as a webhook, by address, and the machine by name. Both are asked by the
// cluster's address in the VPC, while the security group of the machine lets that in, and go on to be while the VPC's
// process is killed.
func webhooksInTheVPC(t *testing.T, i *installation) {
	namespace, err := networkOfPod("pod")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = namespace.Close() })
	url, ca := webhookIn(t, namespace, i.mustKubectl("get", "pod", "pod", "-o", "jsonpath={.status.podIP}"), false)
	i.webhookSays(url, ca, "asked by "+i.endpoint())
	i.kill(i.vpcProcess())
	if _, err := i.kubectl("-n", "by-url", "create", "configmap", "asked", "--dry-run=server"); err == nil || !strings.Contains(err.Error(), "asked by "+i.endpoint()) {
		t.Errorf("while the VPC's process is started again the webhook says: %v", err)
	}
	// The kubelet's port is open at the machine's name, and wants a certificate.
	node := i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
	i.webhookSays("https://"+node+":10250/", i.clusterCA(), "tls: failed to verify certificate")
}

// webhooksAreStrangers has each cluster name the other's API server as a webhook, where it listens on the host and in
// the VPC: neither is reached.
func webhooksAreStrangers(_ *testing.T, muster, blue side) {
	for _, pair := range [][2]side{{muster, blue}, {blue, muster}} {
		from, at := pair[0], pair[1]
		home := from.anonymousURL()
		for url, why := range map[string]string{
			at.anonymousURL(): "is a loopback address",
			home:              "is a loopback address",
			at.mustKubectl("--context", "muster-management", "-n", at.cluster, "get", "cluster", at.cluster, "-o", "jsonpath={.status.privateEndpoint}"): "is the API server of cluster " + at.cluster,
		} {
			from.webhookSays(url, from.clusterCA(), why, "--context="+from.cluster)
		}
		from.mustKubectl("--context", from.cluster, "delete", "validatingwebhookconfiguration", "by-url")
	}
}

// anonymousURL is where the API server answers on the host.
func (s side) anonymousURL() string { return s.anonymous().Host + "/" }
