// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// webhookReviews is where the webhook of the cluster answers reviews.
func (i *installation) webhookReviews() string {
	i.t.Helper()
	var ports struct {
		PodWebhook int `json:"podWebhook"`
	}
	raw, err := os.ReadFile(i.cluster().Ports())
	if err := errors.Join(err, json.Unmarshal(raw, &ports)); err != nil || ports.PodWebhook == 0 {
		i.t.Fatal(ports, err)
	}
	return fmt.Sprintf("https://127.0.0.1:%d/mutate", ports.PodWebhook)
}

// clusterClient is an HTTPS client that trusts the cluster's authority and shows a credential of its programs, or none.
func (i *installation) clusterClient(credential string) *http.Client {
	i.t.Helper()
	pki := i.cluster().PKI()
	ca, err := os.ReadFile(filepath.Join(pki, "cluster", "ca.pem"))
	if err != nil {
		i.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	config := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if credential != "" {
		path := filepath.Join(pki, "issued", credential+".pem")
		pair, err := tls.LoadX509KeyPair(path, path)
		if err != nil {
			i.t.Fatal(err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}}
}

// strangersAsk asks the webhook with no certificate and with those that programs of the cluster have. Only the API
// server's is good.
func (w *irsa) strangersAsk() {
	url := w.webhookReviews()
	for credential, good := range map[string]bool{"": false, "administrator": false, "pod-identity-webhook": false, "pod-identity-webhook-client": true} {
		answer, err := w.clusterClient(credential).Post(url, "application/json", strings.NewReader("{}"))
		if err == nil {
			_ = answer.Body.Close()
		}
		if good != (err == nil && answer.StatusCode == http.StatusBadRequest) || !good && (err == nil || !strings.Contains(err.Error(), "tls: ")) {
			w.t.Errorf("with the certificate %q the webhook answers %v, %v", credential, answer, err)
		}
	}
	w.strangersReadMetrics()
}

// metricsPorts are where the certificate controller and the webhook of the cluster serve their metrics.
func (i *installation) metricsPorts() map[string]string {
	i.t.Helper()
	var ports struct {
		CertificateController int `json:"certificateControllerMetrics"`
		PodWebhook            int `json:"podWebhookMetrics"`
	}
	raw, err := os.ReadFile(i.cluster().Ports())
	if err := errors.Join(err, json.Unmarshal(raw, &ports)); err != nil {
		i.t.Fatal(err)
	}
	return map[string]string{
		"certificate-controller": fmt.Sprintf("https://127.0.0.1:%d/metrics", ports.CertificateController),
		"pod-identity-webhook":   fmt.Sprintf("https://127.0.0.1:%d/metrics", ports.PodWebhook),
	}
}

// strangersReadMetrics reads metrics with no certificate and no token, and with those of programs and service accounts.
// Only who may get /metrics gets them.
func (i *installation) strangersReadMetrics() {
	i.t.Helper()
	i.mustKubectl("create", "serviceaccount", "reader")
	i.mustKubectl("create", "clusterrole", "reader", "--verb=get", "--non-resource-url=/metrics")
	i.mustKubectl("create", "clusterrolebinding", "reader", "--clusterrole=reader", "--serviceaccount=default:reader")
	token := func(account string) string { return strings.TrimSpace(i.mustKubectl("create", "token", account)) }
	for program, url := range i.metricsPorts() {
		for who, c := range map[string]struct {
			credential, token string
			want              int
		}{
			"nobody":                      {"", "", http.StatusUnauthorized},
			"a made-up token":             {"", "made-up", http.StatusUnauthorized},
			"a service account":           {"", token("default"), http.StatusForbidden},
			"one that may":                {"", token("reader"), http.StatusOK},
			"a program without the right": {"kube-scheduler", "", http.StatusForbidden},
			"the administrator":           {"administrator", "", http.StatusOK},
		} {
			request, err := http.NewRequestWithContext(i.t.Context(), http.MethodGet, url, http.NoBody)
			if err != nil {
				i.t.Fatal(err)
			}
			if c.token != "" {
				request.Header.Set("Authorization", "Bearer "+c.token)
			}
			answer, err := i.clusterClient(c.credential).Do(request)
			if err != nil {
				i.t.Errorf("%s by %s: %v", program, who, err)
				continue
			}
			_ = answer.Body.Close()
			if answer.StatusCode != c.want {
				i.t.Errorf("%s by %s: %d, want %d", program, who, answer.StatusCode, c.want)
			}
		}
	}
}

// awayAfter is how many deaths of the webhook the pause before it is started again takes to grow to 6.4 s
// (internal/plane/supervise): a pod is made in less.
const awayAfter = 7

// webhookAway kills the webhook again and again, until it is away for seconds, and while a pod is made. The pod goes
// without, and once the webhook is back, an Event and the metric say so.
func (w *irsa) webhookAway() {
	stop, stopped, away := make(chan struct{}), make(chan int), make(chan struct{})
	go func() {
		killed := map[int]bool{}
		defer func() { stopped <- len(killed) }()
		for {
			if found, err := w.find(); err == nil {
				for _, p := range found {
					if !strings.HasSuffix(p.Name, "pod-identity-webhook") || killed[p.PID] || syscall.Kill(p.PID, syscall.SIGKILL) != nil {
						continue
					}
					if killed[p.PID] = true; len(killed) == awayAfter {
						close(away)
					}
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	select {
	case <-away:
	case <-time.After(20 * time.Second):
		w.t.Fatal("the webhook lives on")
	}
	w.pod("without", "app")
	made := time.Now()
	close(stop)
	w.t.Logf("the webhook was killed %d times", <-stopped)
	if env := w.mustKubectl("get", "pod", "without", "-o", "jsonpath={.spec.containers[0].env}"); env != "" {
		w.t.Fatalf("the webhook was there: the pod has %s", env)
	}
	w.eventually("an Event says which pod went without", func() error {
		out, err := w.kubectl("get", "events", "--field-selector", "involvedObject.name=without,reason=NoAWSIdentity", "-o", "jsonpath={.items[*].message}")
		if err != nil {
			return err
		}
		if !strings.Contains(out, "has the role arn:aws:iam::"+iamAccount+":role/app, and this pod was made without its credentials") {
			return fmt.Errorf("the events say %q", out)
		}
		return nil
	})
	w.t.Logf("an Event told of the pod %v after it was made", time.Since(made).Round(time.Millisecond))
	w.eventually("the metric counts it", func() error { return is(w.webhookMetric(), "1") })
	w.mustKubectl("delete", "pod", "without", "--grace-period=0", "--force")
}

// webhookMetric is how many pods the webhook says to have gone without an identity.
func (w *irsa) webhookMetric() string {
	answer, err := w.clusterClient("administrator").Get(w.metricsPorts()["pod-identity-webhook"])
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	found := regexp.MustCompile(`(?m)^muster_pod_identity_webhook_pods_without_identity (\S+)$`).FindSubmatch(raw)
	if found == nil {
		return "no such metric"
	}
	return string(found[1])
}
