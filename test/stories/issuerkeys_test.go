// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/cluster/servicestatus"
)

// freshPods are pods that get new credentials for each question: by IRSA, and by EKS Pod Identity. Their tokens live
// ten minutes, the least that there is.
const freshPods = `apiVersion: v1
kind: Pod
metadata: {name: NAME, annotations: {eks.amazonaws.com/token-expiration: "600"}}
spec:
  serviceAccountName: ACCOUNT
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: whoami
    image: muster.dev/workload:v1
    imagePullPolicy: IfNotPresent
    command: [/opt/whoami, -fresh]
    volumeMounts: [{name: opt, mountPath: /opt}]
  volumes:
  - {name: opt, hostPath: {path: /opt}}
`

// keyLoad is all who use tokens of the cluster: it counts what they ask and what fails.
type keyLoad struct {
	w         *irsa
	api       *kubernetes.Clientset // of the administrator
	anonymous *rest.Config
	http      *http.Client
	sts       string
	documents time.Duration // for how long a verifier keeps the keys
	pods      []string
	cancel    context.CancelFunc
	group     sync.WaitGroup
	mu        sync.Mutex
	asked     map[string]int
	failures  []string
	keys      map[string]bool // that signed
	kept      []keptToken
}

type keptToken struct {
	text string
	ends time.Time
}

// startKeyLoad begins to ask, until stop.
func (w *irsa) startKeyLoad(documents time.Duration) *keyLoad {
	w.t.Helper()
	l := &keyLoad{w: w, documents: documents, asked: map[string]int{}, keys: map[string]bool{}, pods: []string{"fresh-irsa", "fresh-agent"}}
	config, err := clientcmd.BuildConfigFromFlags("", w.cluster().Kubeconfig())
	if err != nil {
		w.t.Fatal(err)
	}
	config.QPS = -1
	l.anonymous = rest.AnonymousClientConfig(config)
	if l.api, err = kubernetes.NewForConfig(config); err != nil {
		w.t.Fatal(err)
	}
	ca, err := os.ReadFile(authority.NewAccountStore(w.dir.PKI()).AuthorityPath(authority.Account))
	if err != nil {
		w.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	l.http = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	for _, v := range w.endpoint {
		if url, ok := strings.CutPrefix(v, "AWS_ENDPOINT_URL="); ok {
			l.sts = url
		}
	}
	for name, account := range map[string]string{"fresh-irsa": "app", "fresh-agent": "by-agent"} {
		w.apply(strings.NewReplacer("NAME", name, "ACCOUNT", account).Replace(freshPods))
		w.says(name, " 0 failed")
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	l.cancel = cancel
	for _, who := range []func(context.Context) error{l.exchangesNew, l.exchangesNew, l.exchangesOld, l.asksAPIServer, l.verifiesByDocuments} {
		l.group.Go(func() {
			for ctx.Err() == nil {
				if err := who(ctx); err != nil && ctx.Err() == nil {
					l.mu.Lock()
					l.failures = append(l.failures, time.Now().Format(time.TimeOnly)+" "+err.Error())
					l.mu.Unlock()
				}
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	return l
}

func (l *keyLoad) count(what string) {
	l.mu.Lock()
	l.asked[what]++
	l.mu.Unlock()
}

// request has the API server make a token, and keeps the id of its key.
func (l *keyLoad) request(ctx context.Context, audience string) (string, error) {
	l.count("tokens made")
	seconds := int64(600)
	made, err := l.api.CoreV1().ServiceAccounts("default").CreateToken(ctx, "app", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token: %w", err)
	}
	parsed, err := jwt.ParseSigned(made.Status.Token)
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	l.keys[parsed.Headers[0].KeyID] = true
	l.mu.Unlock()
	return made.Status.Token, nil
}

func (l *keyLoad) exchange(ctx context.Context, token string) error {
	form := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleSessionName": {"load"}, "DurationSeconds": {"900"},
		"RoleArn": {"arn:aws:iam::" + iamAccount + ":role/app"}, "WebIdentityToken": {token},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.sts, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := l.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || !strings.Contains(string(raw), "<SecretAccessKey>")) {
		err = fmt.Errorf("STS answers %s: %s", answer.Status, raw)
	}
	return err
}

// exchangesNew keeps a token in fifty, for exchangesOld.
func (l *keyLoad) exchangesNew(ctx context.Context) error {
	token, err := l.request(ctx, stsAudience)
	if err != nil {
		return err
	}
	l.mu.Lock()
	if l.asked["new tokens exchanged"]%50 == 0 {
		l.kept = append(l.kept, keptToken{token, time.Now().Add(580 * time.Second)})
	}
	l.mu.Unlock()
	l.count("new tokens exchanged")
	return l.exchange(ctx, token)
}

// exchangesOld exchanges each token that was kept and is good.
func (l *keyLoad) exchangesOld(ctx context.Context) error {
	l.mu.Lock()
	kept := slices.Clone(l.kept)
	l.mu.Unlock()
	for _, token := range kept {
		if time.Now().After(token.ends) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond): // STS takes 100 requests a second of one subject
		}
		l.count("old tokens exchanged")
		if err := l.exchange(ctx, token.text); err != nil {
			return err
		}
	}
	return nil
}

// asksAPIServer asks it, by a token, whose the token is.
func (l *keyLoad) asksAPIServer(ctx context.Context) error {
	token, err := l.request(ctx, apiServerAudience)
	if err != nil {
		return err
	}
	as := rest.CopyConfig(l.anonymous)
	as.BearerToken = token
	client, err := kubernetes.NewForConfig(as)
	if err != nil {
		return err
	}
	l.count("asked the API server")
	self, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err == nil && self.Status.UserInfo.Username != "system:serviceaccount:default:app" {
		err = fmt.Errorf("the API server takes the token for %s's", self.Status.UserInfo.Username)
	}
	return err
}

// verifiesByDocuments fetches the keys, and verifies new tokens by them until they are as old as a verifier may keep
// them.
func (l *keyLoad) verifiesByDocuments(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.w.issuer+"/keys", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := l.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	var set jose.JSONWebKeySet
	if err := json.NewDecoder(answer.Body).Decode(&set); err != nil {
		return err
	}
	for fetched := time.Now(); time.Since(fetched) < l.documents && ctx.Err() == nil; {
		token, err := l.request(ctx, stsAudience)
		if err != nil {
			return err
		}
		parsed, err := jwt.ParseSigned(token)
		if err != nil {
			return err
		}
		l.count("verified by documents")
		known := set.Key(parsed.Headers[0].KeyID)
		if len(known) != 1 {
			return fmt.Errorf("the key %s is not among those that were published %s ago", parsed.Headers[0].KeyID, time.Since(fetched))
		}
		if err := parsed.Claims(known[0].Key, &jwt.Claims{}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// stop ends the asking, and fails if anything failed. It returns how many keys signed.
func (l *keyLoad) stop() int {
	l.w.t.Helper()
	l.cancel()
	l.group.Wait()
	for _, pod := range l.pods {
		lines := strings.Split(strings.TrimSpace(l.w.mustKubectl("logs", pod)), "\n")
		l.w.t.Logf("pod %s: %s", pod, lines[len(lines)-1])
		if !strings.Contains(lines[len(lines)-1], " 0 failed") {
			l.failures = append(l.failures, pod+": "+lines[len(lines)-1])
		}
	}
	for _, what := range slices.Sorted(maps.Keys(l.asked)) {
		l.w.t.Logf("%s: %d", what, l.asked[what])
	}
	l.w.t.Logf("%d keys signed, %d calls failed", len(l.keys), len(l.failures))
	for _, failure := range l.failures[:min(len(l.failures), 20)] {
		l.w.t.Error(failure)
	}
	l.w.mustKubectl("delete", "pod", "--wait=false", l.pods[0], l.pods[1])
	return len(l.keys)
}

// byAgent gives a service account the role by an association, too.
func (w *irsa) byAgent() {
	w.mustKubectl("create", "serviceaccount", "by-agent")
	w.mustAWS(nil, "iam", "create-role", "--role-name", "by-agent", "--assume-role-policy-document", podTrust)
	w.mustAWS(nil, "eks", "create-pod-identity-association", "--cluster-name", "muster", "--namespace", "default", "--service-account", "by-agent",
		"--role-arn", "arn:aws:iam::"+iamAccount+":role/by-agent")
	w.eventually("the webhook knows the association", func() error {
		w.apply(strings.NewReplacer("NAME", "try", "ACCOUNT", "by-agent").Replace(plainPod))
		env := w.mustKubectl("get", "pod", "try", "-o", "jsonpath={.spec.containers[0].env}")
		w.mustKubectl("delete", "pod", "try", "--wait=true", "--grace-period=0", "--force")
		if !strings.Contains(env, "AWS_CONTAINER_CREDENTIALS_FULL_URI") {
			return errors.New("its pods get " + env)
		}
		return nil
	})
}

// rotateTokenKeys replaces the key and waits until the new one signs.
func (w *irsa) rotateTokenKeys(notice string, args ...string) []servicestatus.TokenKey {
	w.t.Helper()
	out, _ := w.muster(append([]string{"certs", "rotate", "service-account-keys", "--again", "--notice", notice, "-o", "json"}, args...)...)
	var keys []servicestatus.TokenKey
	if err := json.Unmarshal([]byte(out), &keys); err != nil || len(keys) < 2 {
		w.t.Fatalf("%v: %s", err, out)
	}
	return keys
}

// pids are those of all processes of the installation.
func (w *irsa) pids() map[string]int {
	all := map[string]int{}
	for name, p := range w.processes() {
		all[name] = p.PID
	}
	return all
}

// keyReplaced replaces the key twice while everybody uses tokens. TestIssuerKeyRotation (make soak) does so for ten
// minutes.
func (w *irsa) keyReplaced() {
	w.byAgent()
	before := w.pids()
	load := w.startKeyLoad(2 * time.Second)
	for range 2 {
		keys := w.rotateTokenKeys("5s")
		if last := keys[len(keys)-1]; !last.Signs || !last.Published {
			w.t.Errorf("after the rotation: %+v", keys)
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // the load goes on
	}
	if signed := load.stop(); signed != 3 {
		w.t.Errorf("%d keys signed, want 3", signed)
	}
	if after := w.pids(); !maps.Equal(before, after) {
		w.t.Errorf("something restarted: %v, before %v", after, before)
	}
	var set jose.JSONWebKeySet
	out, _ := w.muster("oidc", "jwks")
	if err := json.Unmarshal([]byte(out), &set); err != nil || len(set.Keys) != 3 {
		w.t.Errorf("muster oidc jwks: %v, %s", err, out)
	}
}

// keyReplacedInSpiteOfKills kills whoever has to do with it at each moment of a rotation. A token of before stays good,
// and the new key signs when it was to.
func (w *irsa) keyReplacedInSpiteOfKills() {
	token := func() string {
		return w.mustKubectl("create", "token", "app", "--audience", stsAudience, "--duration", "10m")
	}
	old := token()
	keys := w.rotateTokenKeys("4s", "--no-wait")
	added := keys[len(keys)-1]
	if added.Signs {
		w.t.Errorf("it signs at once: %+v", added)
	}
	for _, at := range []time.Duration{0, 2 * time.Second, 5 * time.Second} {
		time.Sleep(time.Until(added.Created.Add(at))) //nolint:forbidigo // the moment is the point
		w.kill("serve")
		w.kill("token-signer")
	}
	w.eventually("the new key signs", func() error {
		parsed, err := jwt.ParseSigned(token())
		if err == nil && parsed.Headers[0].KeyID != added.ID {
			err = errors.New("the key that signs is " + parsed.Headers[0].KeyID)
		}
		return err
	})
	w.eventually("tokens of both are good", func() error {
		for _, text := range []string{old, token()} {
			if err := w.exchange(text); err != nil {
				return err
			}
		}
		return nil
	})
	w.ready()
}
