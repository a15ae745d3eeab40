// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	ingressHost = "ingress.example.com"
	gatewayHost = "gateway.example.com"
)

// routed is a Deployment behind an Ingress and a Gateway, both with TLS, as their users write them.
const routed = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: muster.dev/workload:v1
        args: [serve]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
        lifecycle: {preStop: {sleep: {seconds: 10}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  tls: [{hosts: [` + ingressHost + `], secretName: certificate}]
  rules:
  - host: ` + ingressHost + `
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web}
spec:
  gatewayClassName: traefik
  listeners:
  - {name: http, protocol: HTTP, port: 80}
  - {name: https, protocol: HTTPS, port: 443, tls: {certificateRefs: [{name: certificate}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: web}]
  hostnames: [` + gatewayHost + `]
  rules: [{backendRefs: [{name: web, port: 80}]}]
`

// TestIngress has the add-on Traefik serve an Ingress and a Gateway at its load balancer, while the pods behind them
// roll, and removes it.
//
//story:about addons/addon addons/traefik network/balancer network/loadbalancercontroller machine/balancerstore network/balancerrange
//story:needs addons
func TestIngress(t *testing.T) {
	i := newInstallation(t)
	if _, err := os.Stat(filepath.Join(i.bin, "addons", "traefik.tar")); err != nil {
		t.Fatalf("run `make addons` first, which builds Traefik: %v", err)
	}
	i.muster("up", "--nodes", "2")
	i.ready()
	w := newIAM(t, i)

	began := time.Now()
	i.muster("create", "addon", "traefik", "--wait")
	t.Logf("create addon to ACTIVE: %s", time.Since(began).Round(100*time.Millisecond))
	var out struct{ Addon shownAddon }
	w.mustAWS(&out, "eks", "describe-addon", "--cluster-name", "muster", "--addon-name", "traefik")
	if out.Addon.Status != "ACTIVE" || len(out.Addon.Health.Issues) > 0 {
		t.Errorf("AWS's API has %+v", out.Addon)
	}

	secret, roots := certificateFor(t, ingressHost, gatewayHost)
	i.apply(secret)
	i.apply(routed)
	i.mustKubectl("rollout", "status", "deployment/web", "--timeout=120s")
	ip, _ := i.balancerOf("traefik", "-n", "kube-system")
	visitor := visitorOf(ip, roots)
	urls := []string{"http://" + ingressHost + "/", "https://" + ingressHost + "/", "http://" + gatewayHost + "/", "https://" + gatewayHost + "/"}
	for _, url := range urls {
		i.eventually(url+" answers", func() error {
			_, err := askPod(t.Context(), visitor, url)
			return err
		})
	}
	if _, err := askPod(t.Context(), visitor, "http://other.example.com/"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a name that nobody routes: %v", err)
	}
	for what, path := range map[string]string{"ingress": "{.status.loadBalancer.ingress[0].ip}", "gateway": "{.status.addresses[0].value}"} {
		i.eventually("the address is in the status of the "+what, func() error {
			return is(i.mustKubectl("get", what, "web", "-o", "jsonpath="+path), ip)
		})
	}

	ingressRolls(t, i, visitor, urls)

	i.muster("delete", "addon", "traefik")
	w.eksGone(addonPath("muster", "traefik"))
	const kinds = "deployments,services,serviceaccounts,poddisruptionbudgets,ingressclasses,gatewayclasses,clusterroles,clusterrolebindings"
	if left := i.mustKubectl("get", kinds, "-A", "-l", "k8s-app=traefik", "-o", "name"); left != "" {
		t.Errorf("the add-on has left %s", left)
	}
	if images, _ := i.muster("image", "ls"); strings.Contains(images, "traefik") {
		t.Errorf("images that are loaded still: %s", images)
	}
	if _, err := net.DialTimeout("tcp", net.JoinHostPort(ip, "80"), time.Second); err == nil {
		t.Errorf("something listens at %s", ip)
	}
	i.mustKubectl("get", "httproute/web", "gateway/web", "ingress/web") // objects that people made stay, and so do their kinds
}

// ingressRolls sends 2,000 requests, each by a connection of its own, while the pods behind Traefik are replaced again
// and again.
func ingressRolls(t *testing.T, i *installation, visitor *http.Client, urls []string) {
	t.Helper()
	const requests, clients = 2_000, 4
	var sent, failed atomic.Int64
	seen := sync.Map{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for ctx.Err() == nil {
				number := sent.Add(1)
				if number > requests {
					return
				}
				pod, err := askPod(ctx, visitor, urls[number%int64(len(urls))])
				if err != nil && failed.Add(1) <= 5 {
					t.Errorf("request %d: %v", number, err)
				}
				seen.Store(pod, true)
				select { // for two rollouts or more
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	rollouts := 0
	for going := true; going; rollouts++ {
		i.mustKubectl("rollout", "restart", "deployment/web")
		i.mustKubectl("rollout", "status", "deployment/web", "--timeout=120s")
		select {
		case <-done:
			going = false
		default:
		}
	}
	pods := 0
	seen.Range(func(any, any) bool { pods++; return true })
	t.Logf("%d of %d requests failed during %d rollouts; %d pods answered", failed.Load(), requests, rollouts, pods)
	if failed.Load() > 0 || rollouts < 2 || pods < 6 {
		t.Errorf("%d requests failed during %d rollouts, answered by %d pods", failed.Load(), rollouts, pods)
	}
}

// visitorOf has every name at one address, and makes a connection for each request.
func visitorOf(ip string, roots *x509.CertPool) *http.Client {
	return &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(ip, port))
		},
	}}
}

// certificateFor makes a Secret with a certificate for names, and who trusts it.
func certificateFor(t *testing.T, names ...string) (secret string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	inBase64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: certificate}\ntype: kubernetes.io/tls\ndata: {tls.crt: %s, tls.key: %s}\n",
		inBase64(certificate), inBase64(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))), roots
}
