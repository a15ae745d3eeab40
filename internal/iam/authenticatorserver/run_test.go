// SPDX-License-Identifier: Apache-2.0

package authenticatorserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/iam/authenticatorconfig"
	"muster.dev/muster/internal/iam/caller"
	"muster.dev/muster/internal/iam/keyservice/keyservicetest"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
	"muster.dev/muster/internal/platform/leaderlease"
)

// apiServer is as much of one as an authenticator asks. What it does not know it answers 404, and notes.
type apiServer struct {
	*httptest.Server
	mode string // recorded, "" if none is

	lease string // that somebody holds, as JSON
	// forbids tells, if not nil, what the authenticator has no right to.
	forbids func(method, path string) bool

	mu       sync.Mutex
	statuses map[string]string // what was applied, by the name of the entry
	unknown  []string
}

const badEntry = `{"apiVersion":"access.muster.dev/v1alpha1","kind":"AccessEntry","metadata":{"name":"wrong","uid":"u-1","generation":1,"resourceVersion":"5"},` +
	`"spec":{"principalARN":"arn:aws:iam::111122223333:instance-profile/x","type":"STANDARD"}}`

func newAPIServer(t *testing.T, mode string) *apiServer {
	t.Helper()
	s := &apiServer{mode: mode, statuses: map[string]string{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	const configMaps = "/api/v1/namespaces/muster-system/configmaps"
	const rbac = "/apis/rbac.authorization.k8s.io/v1"
	const leases = "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases"
	entries, mappings := "/apis/access.muster.dev/v1alpha1/accessentries", "/apis/iamauthenticator.k8s.aws/v1alpha1/iamidentitymappings"
	w.Header().Set("Content-Type", "application/json")
	if s.forbids != nil && s.forbids(r.Method, r.URL.Path) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"%s is forbidden: User \"authenticator\" cannot do that"}`, path.Base(r.URL.Path))
		return
	}
	list := func(kind, item string) {
		if r.URL.Query().Get("watch") != "" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = fmt.Fprintf(w, `{%s,"metadata":{"resourceVersion":"7"},"items":[%s]}`, kind, item)
	}
	switch r.Method + " " + r.URL.Path {
	case "GET " + entries:
		list(`"apiVersion":"access.muster.dev/v1alpha1","kind":"AccessEntryList"`, badEntry)
	case "GET /api/v1/namespaces/kube-system/configmaps":
		if r.URL.Query().Get("fieldSelector") != "metadata.name=aws-auth" {
			s.note(w, r)
			return
		}
		list(`"apiVersion":"v1","kind":"ConfigMapList"`, `{"metadata":{"name":"aws-auth","namespace":"kube-system"},"data":{"mapUsers":"- {userarn: 'arn:aws:iam::111122223333:user/alice', username: alice}"}}`)
	case "GET /api/v1/namespaces":
		list(`"apiVersion":"v1","kind":"NamespaceList"`, "")
	case "GET " + rbac + "/clusterrolebindings":
		list(`"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBindingList"`, "")
	case "GET " + rbac + "/rolebindings":
		list(`"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBindingList"`, "")
	case "GET " + configMaps + "/" + authenticator.ModeConfigMap:
		if s.mode == "" {
			notFound(w)
			return
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"authenticationMode":%q}}`, s.mode)
	case "POST " + configMaps, "POST " + leases, "PUT " + leases + "/" + accessLease,
		"POST /api/v1/namespaces/default/events", "POST /api/v1/namespaces/muster-system/events":
		w.Header().Set("Content-Type", r.Header.Get("Content-Type")) // which may be protobuf
		_, _ = w.Write(body)
	case "PATCH " + entries + "/wrong/status":
		s.mu.Lock()
		s.statuses["wrong"] = string(body)
		s.mu.Unlock()
		_, _ = io.WriteString(w, badEntry)
	case "GET " + leases + "/" + accessLease:
		if s.lease == "" {
			notFound(w)
			return
		}
		_, _ = io.WriteString(w, s.lease)
	case "GET " + mappings: // the kind is not installed
		notFound(w)
	default:
		s.note(w, r)
	}
}

func notFound(w http.ResponseWriter) {
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`)
}

func (s *apiServer) note(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.unknown = append(s.unknown, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	notFound(w)
}

// status is what the status of the entry is, and what was asked that there is no answer to.
func (s *apiServer) status(name string) (string, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.statuses[name], slices.Clone(s.unknown)
}

func (s *apiServer) kubeconfig(t *testing.T) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["a"], c.Contexts["a"], c.CurrentContext = &clientcmdapi.Cluster{Server: s.URL}, &clientcmdapi.Context{Cluster: "a"}, "a"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// authenticatorConfigOf reads a file that has what all of these tests need beside what is given. It tells where the certificates are.
func authenticatorConfigOf(t *testing.T, more string) (c Config, state string) {
	t.Helper()
	state = filepath.Join(t.TempDir(), "state")
	if _, err := authenticator.Init(authenticator.InitConfig{
		StateDir: state, Kubeconfig: filepath.Join(state, "kubeconfig"), Address: "127.0.0.1:0", Now: time.Now(),
	}); err != nil {
		t.Fatal(err)
	}
	file, err := authenticatorconfig.Read([]byte("apiVersion: " + authenticatorconfig.APIVersion + "\nkind: " + authenticatorconfig.Kind + "\nclusterID: demo\nserver: {bindAddress: \"127.0.0.1:0\", healthAddress: \"127.0.0.1:0\", stateDir: " +
		state + "}\n" + more))
	if err != nil {
		t.Fatal(err)
	}
	return Config{File: file, Logger: slog.New(slog.DiscardHandler), Instances: instancesOfEC2}, state
}

// runningAuthenticator runs one until the test ends, and sees that it ends well.
func runningAuthenticator(t *testing.T, c Config) *authenticator.Server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	listening, ended := make(chan *authenticator.Server, 1), make(chan error, 1)
	c.listening = func(s *authenticator.Server) { listening <- s }
	go func() { ended <- Run(ctx, c) }()
	select {
	case err := <-ended:
		cancel()
		t.Fatal(err)
		return nil
	case s := <-listening:
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
		return s
	}
}

// eventually polls what takes goroutines of other packages.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}

// health asks a path of the health address.
func health(t *testing.T, s *authenticator.Server, at string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.HealthAddress().String()+at, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

// reviewOf asks as an API server does, with the certificate that init made.
func reviewOf(t *testing.T, s *authenticator.Server, state, token string) (int, string) {
	t.Helper()
	own, err := tls.LoadX509KeyPair(filepath.Join(state, "client.pem"), filepath.Join(state, "client-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := os.ReadFile(filepath.Join(state, authenticatorconfig.CertificateFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	body, _ := json.Marshal(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": map[string]any{"token": token}})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.Address().String()+"/authenticate", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var got struct {
		Status struct{ User struct{ Username string } }
	}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, got.Status.User.Username
}

// stsOf is the part of the file that sends what is meant for STS to one of the test's own.
func stsOf(t *testing.T, s *ststest.STS) string {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "sts.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("sts: {ca: %s, endpoints: {%s: %q}}\n", ca, ststest.Host, s.URL)
}

func TestAnAuthenticatorOfACluster(t *testing.T) {
	alice := ststest.User("alice", 1)
	sts := ststest.New(t, alice, ststest.User("bob", 2))
	api := newAPIServer(t, "")
	c, state := authenticatorConfigOf(t, stsOf(t, sts))
	c.Kubeconfig = api.kubeconfig(t)
	s := runningAuthenticator(t, c)
	eventually(t, "it is ready", func() bool { status, _ := health(t, s, "/readyz"); return status == http.StatusOK })
	for _, tc := range []struct {
		key    ststest.Key
		status int
		name   string
	}{{alice, http.StatusOK, "alice"}, {ststest.User("bob", 2), http.StatusForbidden, ""}, {ststest.User("mallory", 3), http.StatusForbidden, ""}} {
		if status, name := reviewOf(t, s, state, ststest.Token(t, tc.key, "demo", time.Now())); status != tc.status || name != tc.name {
			t.Errorf("%s: %d %q, want %d %q", tc.key.ARN, status, name, tc.status, tc.name)
		}
	}
	if n := sts.Calls.Load(); n != 3 {
		t.Errorf("STS was asked %d times", n)
	}
	if _, metrics := health(t, s, "/metrics"); !strings.Contains(metrics, `aws_iam_authenticator_sts_responses_total{ResponseCode="200",StsRegion="eu-west-1"} 2`) {
		t.Error("metrics do not count the answers of STS")
	}
	eventually(t, "the entry says what is wrong", func() bool {
		applied, _ := api.status("wrong")
		return strings.Contains(applied, `"type":"Accepted"`) && strings.Contains(applied, `"status":"False"`) && strings.Contains(applied, "instance profile")
	})
	if _, unknown := api.status(""); len(unknown) > 0 { // what the chart's roles and docs do not know of would be refused
		t.Errorf("it also asked for %v", unknown)
	}
}

// lines is a log that many write to.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// worrying are the lines that say that something is wrong.
func (l *lines) worrying() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			out = append(out, line)
		}
	}
	return out
}

// Beside a new cluster the authenticator starts before its rights are there, and API servers see one of them after the other.
func TestAnAuthenticatorWaitsForItsRightsInSilence(t *testing.T) {
	alice := ststest.User("alice", 1)
	api := newAPIServer(t, "")
	var step atomic.Int32
	asked := make(chan string, 1024)
	api.forbids = func(_, at string) bool {
		need := map[string]int32{"configmaps": 1, "muster-authenticator": 1, "accessentries": 2, "iamidentitymappings": 3, "namespaces": 4, "rolebindings": 4, "clusterrolebindings": 4}[path.Base(at)]
		if need <= step.Load() {
			return false
		}
		select {
		case asked <- path.Base(at):
		default:
		}
		return true
	}
	c, state := authenticatorConfigOf(t, stsOf(t, ststest.New(t, alice))+"accessPolicies: {enabled: true}\n")
	log := &lines{}
	c.Kubeconfig, c.Logger = api.kubeconfig(t), slog.New(slog.NewTextHandler(log, nil))
	s := runningAuthenticator(t, c)
	for range 4 { // each of them is missed at least twice
		for range 2 {
			<-asked
		}
		step.Add(1)
		for len(asked) > 0 {
			<-asked
		}
	}
	eventually(t, "it is ready", func() bool { status, _ := health(t, s, "/readyz"); return status == http.StatusOK })
	if status, name := reviewOf(t, s, state, ststest.Token(t, alice, "demo", time.Now())); status != http.StatusOK || name != "alice" {
		t.Errorf("%d %q", status, name)
	}
	for _, line := range log.worrying() {
		if !strings.Contains(line, "entry of a mapping is wrong") { // which one is
			t.Error(line)
		}
	}
}

// In an outage a replica loses its lease while nobody can take it over. It is the same replica afterwards, and does not wait for itself.
func TestAReplicaTakesUpItsOwnLease(t *testing.T) {
	for holder, want := range map[string]bool{"this": true, "another": false} {
		t.Run(holder, func(t *testing.T) {
			t.Parallel()
			api := newAPIServer(t, "")
			now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
			api.lease = fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q,"namespace":"muster-system","resourceVersion":"3"},`+
				`"spec":{"holderIdentity":%q,"leaseDurationSeconds":3600,"acquireTime":%[3]q,"renewTime":%[3]q}}`, accessLease, holder, now)
			ctx, cancel := context.WithCancel(t.Context())
			leads, ended := make(chan struct{}), make(chan struct{})
			l := leading{cluster: &rest.Config{Host: api.URL}, namespace: "muster-system", identity: "this", tenure: leaderlease.NewTenure(time.Now, slog.New(slog.DiscardHandler)), logger: slog.New(slog.DiscardHandler)}
			l.status = func(ctx context.Context) error {
				close(leads)
				<-ctx.Done()
				return nil
			}
			go func() { defer close(ended); _ = l.run(ctx) }() // it is ended below, of which it may complain
			patience := 30 * time.Second
			if !want {
				patience = 3 * time.Second
			}
			got := false
			select {
			case <-leads:
				got = true
			case <-time.After(patience):
			}
			cancel()
			<-ended
			if got != want {
				t.Errorf("with the lease of %s: leads: %v", holder, got)
			}
		})
	}
}

// Rights that do not come are told once, with what to do.
func TestAnAuthenticatorSaysOnceWhichRightItMisses(t *testing.T) {
	for name, tc := range map[string]struct {
		missing string
		want    []string
	}{
		"the mode":              {"muster-authenticator", []string{"nobody is let in", "muster-authenticator is forbidden", "deploy/manifests/authenticator.yaml"}},
		"a source of mappings":  {"iamidentitymappings", []string{"nobody is let in", "iamidentitymappings is forbidden", "deploy/manifests/authenticator.yaml"}},
		"what policies bind":    {"rolebindings", []string{"access policies not kept", "rolebindings is forbidden", "deploy/manifests/authenticator-access-policies.yaml"}},
		"the lease of who does": {accessLease, []string{"access policies not kept", accessLease + " is forbidden", "deploy/manifests/authenticator-access-policies.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newAPIServer(t, "")
			var asked atomic.Int32
			api.forbids = func(_, at string) bool {
				if path.Base(at) != tc.missing {
					return false
				}
				asked.Add(1)
				return true
			}
			c, _ := authenticatorConfigOf(t, stsOf(t, ststest.New(t))+"accessPolicies: {enabled: true}\n")
			log := &lines{}
			c.Kubeconfig, c.Logger, c.patience = api.kubeconfig(t), slog.New(slog.NewTextHandler(log, nil)), 100*time.Millisecond
			runningAuthenticator(t, c)
			var said []string
			eventually(t, "it says so", func() bool {
				said = slices.DeleteFunc(log.worrying(), func(line string) bool { return strings.Contains(line, "entry of a mapping is wrong") })
				return len(said) > 0
			})
			more := asked.Load() + 2
			eventually(t, "it has tried again", func() bool { return asked.Load() >= more })
			if said = slices.DeleteFunc(log.worrying(), func(line string) bool { return strings.Contains(line, "entry of a mapping is wrong") }); len(said) != 1 {
				t.Errorf("it is said %d times:\n%s", len(said), strings.Join(said, ""))
			}
			for _, want := range tc.want {
				if !strings.Contains(said[0], want) {
					t.Errorf("no %q in %s", want, said[0])
				}
			}
		})
	}
}

func TestAnAuthenticatorDoesNotGoBackInMode(t *testing.T) {
	api := newAPIServer(t, "API")
	c, _ := authenticatorConfigOf(t, stsOf(t, ststest.New(t)))
	c.Kubeconfig = api.kubeconfig(t)
	if err := Run(t.Context(), c); !errors.Is(err, authenticator.ErrMode) {
		t.Errorf("it ended with %v", err)
	}
}

func TestAnAuthenticatorOfAFileAsksNoCluster(t *testing.T) {
	alice := ststest.User("alice", 1)
	mappings := filepath.Join(t.TempDir(), "mappings.yaml")
	if err := os.WriteFile(mappings, []byte("mapUsers:\n- {userarn: "+alice.ARN+", username: al}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, state := authenticatorConfigOf(t, stsOf(t, ststest.New(t, alice))+"mapping: {file: "+mappings+", fileOnly: true}\n")
	c.Kubeconfig = filepath.Join(state, "there-is-none")
	s := runningAuthenticator(t, c)
	eventually(t, "it is ready", func() bool { status, _ := health(t, s, "/readyz"); return status == http.StatusOK })
	if status, name := reviewOf(t, s, state, ststest.Token(t, alice, "demo", time.Now())); status != http.StatusOK || name != "al" {
		t.Errorf("%d %q", status, name)
	}
}

func TestAnAuthenticatorIsNotReadyWithoutTheIdentityService(t *testing.T) {
	mappings := filepath.Join(t.TempDir(), "mappings.yaml")
	if err := os.WriteFile(mappings, []byte("mapUsers: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, state := authenticatorConfigOf(t, musterBackend("/does/not/exist.sock", keyservicetest.New(t).Caller(t, caller.Authenticator("demo", "0A1B")))+"mapping: {file: "+mappings+", fileOnly: true}\n")
	s := runningAuthenticator(t, c)
	eventually(t, "it says so", func() bool {
		status, why := health(t, s, "/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(why, "the identity service does not answer on /does/not/exist.sock")
	})
	if status, _ := reviewOf(t, s, state, ststest.Token(t, ststest.User("alice", 1), "demo", time.Now())); status != http.StatusServiceUnavailable {
		t.Errorf("it answers %d", status)
	}
}

func TestWhatKeepsAnAuthenticatorFromStarting(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		more, kubeconfig, says string
		without                bool
	}{
		"no kubeconfig":                 {kubeconfig: "/does/not/exist", says: "reading kubeconfig /does/not/exist"},
		"no file of mappings":           {more: "mapping: {file: /does/not/exist, fileOnly: true}", says: "/does/not/exist"},
		"no authority of STS":           {more: "sts: {ca: /does/not/exist}\nmapping: {file: " + empty + ", fileOnly: true}", says: "reading sts.ca"},
		"an authority that is empty":    {more: "sts: {ca: " + empty + "}\nmapping: {file: " + empty + ", fileOnly: true}", says: "holds no certificate"},
		"no authority of the account":   {more: musterBackend("/s", keyservicetest.Credential{CA: "/does/not/exist", File: empty}) + "mapping: {file: " + empty + ", fileOnly: true}", says: "reading the account's authority: open /does/not/exist"},
		"no credential for the account": {more: musterBackend("/s", keyservicetest.Credential{CA: keyservicetest.New(t).Account(t).CA, File: empty}) + "mapping: {file: " + empty + ", fileOnly: true}", says: "reading the credential for the account"},
		"no serving certificate":        {more: "mapping: {file: " + empty + ", fileOnly: true}", says: "/does/not/exist", without: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := authenticatorConfigOf(t, tc.more)
			if tc.without {
				c.File.Server.Certificate = "/does/not/exist"
			}
			c.Kubeconfig = tc.kubeconfig
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.listening = func(*authenticator.Server) { t.Error("it listens"); cancel() }
			if err := Run(ctx, c); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want %q", err, tc.says)
			}
		})
	}
}
