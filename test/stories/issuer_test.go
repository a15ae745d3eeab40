// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"

	"muster.dev/muster/internal/certificates/authority"
)

const (
	apiServerAudience = "https://kubernetes.default.svc"
	stsAudience       = "sts.amazonaws.com"
)

// identified is a pod with a token for STS, as EKS's webhook would give it one.
const identified = `apiVersion: v1
kind: Pod
metadata: {name: identified}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: identified
    image: muster.dev/workload:v1
    imagePullPolicy: IfNotPresent
    args: [serve]
    volumeMounts: [{name: aws-iam-token, mountPath: /var/run/secrets/eks.amazonaws.com/serviceaccount}]
  volumes:
  - name: aws-iam-token
    projected: {sources: [{serviceAccountToken: {audience: sts.amazonaws.com, expirationSeconds: 86400, path: token}}]}
`

// tokensVerified verifies the tokens of a pod as somebody would who has no way to the API server: by the issuer's
// documents, over TLS, with a library that is none of Muster's.
func tokensVerified(t *testing.T, i *installation) {
	i.apply(identified)
	defer i.mustKubectl("delete", "pod", "identified", "--wait=true")
	i.mustKubectl("wait", "pod/identified", "--for=condition=Ready", "--timeout=60s")
	fields := strings.Fields(i.mustKubectl("get", "pod", "identified", "-o", `jsonpath={.metadata.uid} {.spec.nodeName}`))
	id := i.mustKubectl("get", "node", fields[1], "-o", "jsonpath={.spec.providerID}")
	machine := id[strings.LastIndex(id, "/")+1:]
	token := func(volume string) string {
		out, _ := i.muster("exec", machine, "--", "sh", "-c", "cat /var/lib/kubelet/pods/"+fields[0]+"/volumes/kubernetes.io~projected/"+volume+"/token")
		return strings.TrimSpace(out)
	}

	out, _ := i.muster("get", "clusters", "-o", "json")
	issuer := issuerIn(t, out)
	v := newVerifier(t, i, issuer)
	forSTS, forAPI := token("aws-iam-token"), token("kube-api-access-*")
	v.accepts(forSTS, stsAudience)
	v.accepts(forAPI, apiServerAudience)

	// The API server takes the one that is for it, and only that.
	status, err := i.status()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		token string
		want  int
	}{{forAPI, http.StatusForbidden}, {forSTS, http.StatusUnauthorized}} { // forbidden: it knows who that is
		if got := v.status(status.Clusters[0].Endpoint+"/api/v1/nodes", test.token); got != test.want {
			t.Errorf("the API server answers %d, want %d", got, test.want)
		}
	}
	// It says the same of itself.
	if own := i.mustKubectl("get", "--raw", "/openid/v1/jwks"); own != string(v.keys) {
		t.Errorf("the API server has the keys\n%s\nand the issuer\n%s", own, v.keys)
	}
	var own, served map[string]any
	if err := json.Unmarshal([]byte(i.mustKubectl("get", "--raw", "/.well-known/openid-configuration")), &own); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(v.discovery, &served); err != nil {
		t.Fatal(err)
	}
	for name, want := range own {
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(served[name])
		if !bytes.Equal(a, b) {
			t.Errorf("%s is %s to the API server and %s to the issuer", name, a, b)
		}
	}
	base := issuer[:strings.LastIndex(issuer, "/")+1]
	for _, path := range []string{"", strings.Repeat("A", 32) + "/keys", "../metrics"} {
		if got := v.status(base+path, ""); got != http.StatusNotFound {
			t.Errorf("%s%s is answered with %d", base, path, got)
		}
	}
}

// issuerIn finds the one issuer in a list of clusters.
func issuerIn(t *testing.T, list string) string {
	t.Helper()
	_, rest, found := strings.Cut(list, `"issuer": "`)
	issuer, _, ended := strings.Cut(rest, `"`)
	if !found || !ended || !strings.HasPrefix(issuer, "https://127.") {
		t.Fatalf("no cluster says who its issuer is: %s", list)
	}
	return issuer
}

// verifier is somebody who trusts an issuer and the account's authority.
type verifier struct {
	t               *testing.T
	issuer          string
	client          *http.Client
	discovery, keys []byte
}

func newVerifier(t *testing.T, i *installation, issuer string) *verifier {
	t.Helper()
	return newVerifierBy(t, i, issuer, nil)
}

// newVerifierBy connects in a way of its own, if there is one.
func newVerifierBy(t *testing.T, i *installation, issuer string, dial func(ctx context.Context, network, address string) (net.Conn, error)) *verifier {
	t.Helper()
	pool := x509.NewCertPool()
	for _, path := range []string{ // of the issuer and of the API server
		authority.NewAccountStore(i.dir.PKI()).AuthorityPath(authority.Account), authority.NewStore(i.cluster().PKI()).AuthorityPath(authority.Cluster),
	} {
		if ca, err := os.ReadFile(path); err != nil || !pool.AppendCertsFromPEM(ca) {
			t.Fatal("reading the authority:", err)
		}
	}
	v := &verifier{t: t, issuer: issuer, client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}}
	v.discovery = v.get(issuer + "/.well-known/openid-configuration")
	var found struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(v.discovery, &found); err != nil || found.Issuer != issuer {
		t.Fatalf("%s says that it is %s (%v)", issuer, found.Issuer, err)
	}
	v.keys = v.get(found.Keys)
	return v
}

func (v *verifier) do(url, token string) *http.Response {
	v.t.Helper()
	request, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		v.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := v.client.Do(request)
	if err != nil {
		v.t.Fatal(err)
	}
	return response
}

func (v *verifier) status(url, token string) int {
	v.t.Helper()
	response := v.do(url, token)
	_ = response.Body.Close()
	return response.StatusCode
}

func (v *verifier) get(url string) []byte {
	v.t.Helper()
	response := v.do(url, "")
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		v.t.Fatalf("%s: %s, %v: %s", url, response.Status, err, raw)
	}
	return raw
}

// accepts fails unless a token is the issuer's and for the audience, and not for another.
func (v *verifier) accepts(token, audience string) {
	v.t.Helper()
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(v.keys, &set); err != nil {
		v.t.Fatal(err)
	}
	parsed, err := jwt.ParseSigned(token)
	if err != nil {
		v.t.Fatalf("the pod's token is none: %v", err)
	}
	if len(parsed.Headers) != 1 {
		v.t.Fatalf("it has the headers %v", parsed.Headers)
	}
	keys := set.Key(parsed.Headers[0].KeyID)
	if len(keys) != 1 {
		v.t.Fatalf("%d keys are called %s: %s", len(keys), parsed.Headers[0].KeyID, v.keys)
	}
	var claims jwt.Claims
	if err := parsed.Claims(keys[0].Key, &claims); err != nil {
		v.t.Fatalf("its signature: %v", err)
	}
	want := jwt.Expected{Issuer: v.issuer, Subject: "system:serviceaccount:default:default", Audience: jwt.Audience{audience}, Time: time.Now()}
	if err := claims.Validate(want); err != nil {
		v.t.Errorf("the claims %+v: %v", claims, err)
	}
	if len(claims.Audience) != 1 {
		v.t.Errorf("it is for %v", claims.Audience)
	}
}
