// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/supervise"
)

const (
	// identityAccounts are the service accounts whose tokens are exchanged in turn: each may send 100 a second.
	identityAccounts = 100
	identityWorkers  = 16
	identityTime     = 10 * time.Second
	// podsPerSecond and podsTime are the pods that the webhook is asked about.
	podsPerSecond, podsTime = 200, 20 * time.Second
	// badPerSecond and badTime are the flood of bad tokens, and badCalm how long the service is left alone before its
	// memory is read.
	badPerSecond, badTime, badCalm = 2000, 60 * time.Second, 10 * time.Second
)

// benchIdentities measures pods' identities on a cluster: the webhook, STS with service account tokens beside the check
// of a signature, and the service's memory before and after a flood of bad tokens.
func benchIdentities(ctx context.Context, bin string) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--nodes", "1"); err != nil {
		return err
	}
	c, err := t.awsClient()
	if err != nil {
		return err
	}
	tokens, err := t.makeIdentities(ctx, c)
	if err != nil {
		return err
	}
	w := newTable()
	if err := t.benchWebhook(ctx, w); err != nil {
		return err
	}
	if err := t.benchExchange(ctx, w, c, tokens); err != nil {
		return err
	}
	if err := t.benchBadTokens(ctx, w, c, tokens[0]); err != nil {
		return err
	}
	return w.Flush()
}

// makeIdentities makes the provider, a role that trusts all service accounts of a namespace, and their tokens.
func (t trial) makeIdentities(ctx context.Context, c *awsClient) ([]string, error) {
	described, err := c.send(ctx, c.keys[0], eksCall(http.MethodGet, "/clusters/muster", ""))
	if err != nil {
		return nil, err
	}
	issuer := regexp.MustCompile(`"issuer":"(https://[^"]+)"`).FindStringSubmatch(described)
	if issuer == nil {
		return nil, errors.New("the cluster has no issuer")
	}
	provider := strings.TrimPrefix(issuer[1], "https://")
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Federated":"arn:aws:iam::000000000000:oidc-provider/%s"},"Action":"sts:AssumeRoleWithWebIdentity",
"Condition":{"StringLike":{"%s:sub":"system:serviceaccount:bench:*"},"StringEquals":{"%s:aud":"sts.amazonaws.com"}}}]}`, provider, provider, provider)
	for _, q := range []awsCall{
		iamCall("CreateOpenIDConnectProvider", "Url", issuer[1], "ClientIDList.member.1", "sts.amazonaws.com"),
		iamCall("CreateRole", "RoleName", "bench", "AssumeRolePolicyDocument", policy),
	} {
		if _, err := c.send(ctx, c.keys[0], q); err != nil {
			return nil, err
		}
	}
	var manifest strings.Builder
	manifest.WriteString("apiVersion: v1\nkind: Namespace\nmetadata: {name: bench}\n")
	for n := range identityAccounts {
		fmt.Fprintf(&manifest, "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {namespace: bench, name: app-%d, annotations: {eks.amazonaws.com/role-arn: %q}}\n", n, benchRole)
	}
	path := filepath.Join(t.dir, "accounts.yaml")
	if err := os.WriteFile(path, []byte(manifest.String()), 0o600); err != nil {
		return nil, err
	}
	if _, err := t.mustKubectl(ctx, "apply", "-f", path); err != nil {
		return nil, err
	}
	var tokens []string
	for n := range identityAccounts {
		token, err := t.mustKubectl(ctx, "-n", "bench", "create", "token", fmt.Sprintf("app-%d", n), "--audience", "sts.amazonaws.com")
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, strings.TrimSpace(token))
	}
	return tokens, nil
}

const benchRole = "arn:aws:iam::000000000000:role/bench"

// benchWebhook asks the webhook's process about pods at a steady rate, as the API server does.
func (t trial) benchWebhook(ctx context.Context, w io.Writer) error {
	cluster := t.state().Cluster("muster")
	var ports struct {
		PodWebhook int `json:"podWebhook"`
	}
	raw, err := os.ReadFile(cluster.Ports())
	if err := errors.Join(err, json.Unmarshal(raw, &ports)); err != nil {
		return err
	}
	credential := filepath.Join(cluster.PKI(), "issued", "pod-identity-webhook-client.pem")
	pair, err := tls.LoadX509KeyPair(credential, credential)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(cluster.PKI(), "cluster", "ca.pem"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		MaxIdleConnsPerHost: identityWorkers, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }},
	}}
	address := fmt.Sprintf("https://127.0.0.1:%d/mutate", ports.PodWebhook)
	spent, err := t.spending(component.ProcessPrefix("muster") + component.PodWebhook)
	if err != nil {
		return err
	}
	all, err := paced(ctx, podsPerSecond, podsTime, func(n int) error {
		review := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-%d","namespace":"bench","operation":"CREATE","object":{"apiVersion":"v1","kind":"Pod",
"metadata":{"generateName":"app-"},"spec":{"serviceAccountName":"app-%d","containers":[{"name":"app","image":"app"},{"name":"side","image":"side"}]}}}}`, n, n%identityAccounts)
		answer, err := client.Post(address, "application/json", strings.NewReader(review)) //nolint:noctx // it has a timeout
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err == nil && !bytes.Contains(body, []byte(`"patch":`)) {
			err = fmt.Errorf("no patch: %.200s", body)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(all)
	_, _ = fmt.Fprintf(w, "webhook, %d pods/s, ms: median, p99, worst\t%.2f\t%.2f\t%.2f\t\n", podsPerSecond, milliseconds(all, 50), milliseconds(all, 99), milliseconds(all, 100))
	cpu, err := spent(len(all))
	_, _ = fmt.Fprintf(w, "webhook: µs of CPU a pod\t%.0f\t\t\t\n", cpu)
	return err
}

// milliseconds is a percentile of sorted times.
func milliseconds(sorted []time.Duration, percent int) float64 {
	return 1000 * sorted[min(len(sorted)*percent/100, len(sorted)-1)].Seconds()
}

// paced does something so many times a second, whatever time each takes, and returns how long each took.
func paced(ctx context.Context, rate int, long time.Duration, do func(n int) error) ([]time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var group sync.WaitGroup
	places := make(chan struct{}, 256)
	began := time.Now()
	for n := 0; time.Since(began) < long && ctx.Err() == nil; n++ {
		if wait := time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(rate))); wait > 0 {
			if err := pause(ctx, wait); err != nil {
				break
			}
		}
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			at := time.Now()
			err := do(n)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, time.Since(at))
			if failed == nil {
				failed = err
			}
		})
	}
	group.Wait()
	return all, errors.Join(failed, ctx.Err())
}

// exchange exchanges a token for credentials, and returns STS's answer.
func (c *awsClient) exchange(token string) (string, error) {
	answer, err := c.http.PostForm(c.url, url.Values{ //nolint:noctx // it has a timeout
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {benchRole}, "RoleSessionName": {"bench"}, "WebIdentityToken": {token},
	})
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// spending returns what gives the microseconds of CPU that a process spends on each of so many things from now on,
// which other programs of the host change little.
func (t trial) spending(process string) (each func(things int) (float64, error), err error) {
	before, err := t.processorTime()
	if err == nil && before[process] == 0 {
		err = fmt.Errorf("no process %s runs", process)
	}
	return func(things int) (float64, error) {
		after, err := t.processorTime()
		return float64((after[process] - before[process]).Microseconds()) / float64(max(things, 1)), err
	}, err
}

// benchExchange measures STS over the wire, client and service on the same processors, and what checking a signature
// costs.
func (t trial) benchExchange(ctx context.Context, w io.Writer, c *awsClient, tokens []string) error {
	c.http.Transport.(*http.Transport).MaxIdleConnsPerHost = identityWorkers
	var next, done atomic.Int64
	var group sync.WaitGroup
	failures := make(chan error, identityWorkers)
	spent, err := t.spending("serve")
	if err != nil {
		return err
	}
	began := time.Now()
	for range identityWorkers {
		group.Go(func() {
			for time.Since(began) < identityTime && ctx.Err() == nil {
				answer, err := c.exchange(tokens[int(next.Add(1))%len(tokens)])
				if err != nil || !strings.Contains(answer, "<SecretAccessKey>") {
					failures <- errors.Join(err, fmt.Errorf("STS answers %.300s", answer))
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	rate := float64(done.Load()) / time.Since(began).Seconds()
	select {
	case err := <-failures:
		return err
	default:
	}
	cpu, err := spent(int(done.Load()))
	if err != nil {
		return err
	}
	floor, err := signatures()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "AssumeRoleWithWebIdentity over TLS: calls/s; RS256 signatures checked/s; share\t%.0f\t%.0f\t%.2f\t\n", rate, floor, rate/floor)
	_, _ = fmt.Fprintf(w, "AssumeRoleWithWebIdentity: the service's µs of CPU a call; calls/s that is of two processors\t%.0f\t%.0f\t\t\n", cpu, 2e6/cpu)
	return nil
}

// signatures is how many signatures all processors check a second.
func signatures() (float64, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return 0, err
	}
	sum := sha256.Sum256([]byte("token"))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		return 0, err
	}
	var done atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for time.Since(began) < 2*time.Second {
				if rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature) == nil {
					done.Add(1)
				}
			}
		})
	}
	group.Wait()
	return float64(done.Load()) / time.Since(began).Seconds(), nil
}

// benchBadTokens floods STS with tokens that are each another, and reads the service's memory before and after.
func (t trial) benchBadTokens(ctx context.Context, w io.Writer, c *awsClient, good string) error {
	parts := strings.Split(good, ".")
	if len(parts) != 3 {
		return errors.New("the token is no JSON Web Token")
	}
	bad := func(n int) string {
		switch n % 3 {
		case 0: // a signature that is another's
			return parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(make([]byte, 240), "%016d", n))
		case 1: // an issuer that nobody knows
			return parts[0] + "." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"iss":"https://issuer-%d.example.com","sub":"s-%d","aud":"sts.amazonaws.com","exp":%d,"iat":%d}`, n, n, time.Now().Unix()+600, time.Now().Unix())) + "." + parts[2]
		default: // of no form
			return fmt.Sprintf("%d.%s", n, strings.Repeat("x", n%20000))
		}
	}
	memory := func() (float64, error) {
		if err := pause(ctx, badCalm); err != nil {
			return 0, err
		}
		found, err := supervise.Find(t.state())
		if err != nil {
			return 0, err
		}
		for _, p := range found {
			if p.Name == "serve" {
				h, err := memoryOf(p.PID)
				return float64(h.resident) / 1024, err
			}
		}
		return 0, errors.New("the service does not run")
	}
	before, err := memory()
	if err != nil {
		return err
	}
	sent, after := 0, [2]float64{}
	for minute := range after { // growth in the second minute is growth that does not end
		all, err := paced(ctx, badPerSecond, badTime, func(n int) error {
			answer, err := c.exchange(bad(sent + n))
			if err == nil && strings.Contains(answer, "<SecretAccessKey>") {
				err = errors.New("a bad token is good")
			}
			return err
		})
		if err != nil {
			return err
		}
		sent += len(all)
		if after[minute], err = memory(); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(w, "%d bad tokens in two minutes: the service's MiB before, after the first, after the second\t%.0f\t%.0f\t%.0f\t\n", sent, before, after[0], after[1])
	return nil
}
