// SPDX-License-Identifier: Apache-2.0

package authenticatorserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/iam/authenticatorconfig"
	"muster.dev/muster/internal/iam/caller"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/keyservice/keyservicetest"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

// musterAccount is an account with one user, its two sockets and its STS, and the authenticators of its clusters.
type musterAccount struct {
	service            *identityservice.Service
	identity, metadata string
	authority          *keyservicetest.Authority
	sts                *httptest.Server
	user               ststest.Key
	// end ends what answers authenticators, as when the service is killed.
	end func()
}

func newMusterAccount(t *testing.T) *musterAccount {
	t.Helper()
	dir, err := os.MkdirTemp("", "ma-") //nolint:usetesting // the paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	store := identityservicetest.NewMemory()
	if _, err := identityservice.First(t.Context(), store, identityservice.DefaultAccount, filepath.Join(dir, "credentials"), time.Now()); err != nil {
		t.Fatal(err)
	}
	sealer, err := identityservice.OpenSealer(filepath.Join(dir, "keys"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	service, err := identityservice.New(identityservice.Config{Store: store, Sealer: sealer, Instances: refusedMachine{"a"}, Region: "eu-west-1", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	state, err := store.State()
	if err != nil {
		t.Fatal(err)
	}
	admin, _ := state.User(identityservice.DefaultAccount, identityservice.FirstUserName)
	key := state.KeysOf(admin.ID)[0]
	front, err := service.Front(awsfront.Config{})
	if err != nil {
		t.Fatal(err)
	}
	a := &musterAccount{
		service: service, identity: filepath.Join(dir, "identity.sock"), metadata: filepath.Join(dir, "metadata.sock"), authority: keyservicetest.New(t),
		sts: httptest.NewServer(front), user: ststest.Key{ID: key.ID, Secret: key.Secret.Reveal()},
	}
	t.Cleanup(a.sts.Close)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, 3)
	for n, socket := range []string{a.identity, a.metadata} {
		server, err := keyservice.NewServer(keyservice.ServerConfig{
			Backend: service, Credential: keyservice.Credential(a.authority.Account(t)), Clusters: func(who caller.Caller) bool { return who.Cluster == "a" || who.Cluster == "b" },
			Credentials: n == 1, Logger: log,
		})
		if err != nil {
			t.Fatal(err)
		}
		listener, err := server.Listen(ctx, socket)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(ctx, listener); ended <- struct{}{} }()
	}
	go func() { service.Run(ctx); ended <- struct{}{} }()
	stopped := false
	a.end = func() {
		if !stopped {
			stopped = true
			cancel()
			for range 3 {
				<-ended
			}
		}
	}
	t.Cleanup(a.end)
	return a
}

// door is a cluster's authenticator, as its API server reaches it.
type door struct {
	*authenticator.Server
	state      string
	credential keyservicetest.Credential
	config     Config
}

// door starts the authenticator of a cluster, which says that it is another's if called is not its name.
func (a *musterAccount) door(t *testing.T, cluster, called string) door {
	t.Helper()
	mappings := filepath.Join(t.TempDir(), "mappings.yaml")
	if err := os.WriteFile(mappings, []byte("mapUsers:\n- {userarn: 'arn:aws:iam::000000000000:user/admin', username: admin}\n"+
		"mapRoles:\n- {rolearn: 'arn:aws:iam::000000000000:role/muster-node', username: 'system:node:{{EC2PrivateDNSName}}', groups: [system:nodes]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := door{credential: a.authority.Caller(t, caller.Authenticator(cluster, "0A1B"))}
	d.config, d.state = authenticatorConfigOf(t, musterBackend(a.identity, d.credential)+"mapping: {file: "+mappings+", fileOnly: true}\n")
	d.config.File.ClusterID, d.config.File.Muster.StaleAfter = called, "3m"
	d.Server = runningAuthenticator(t, d.config)
	eventually(t, "it is ready", func() bool { status, _ := health(t, d.Server, "/readyz"); return status == http.StatusOK })
	return d
}

func (d door) says(t *testing.T, what, token string, want int) {
	t.Helper()
	if status, name := reviewOf(t, d.Server, d.state, token); status != want || (name == "admin") != (want == http.StatusOK) {
		t.Errorf("%s: %d %q, want %d", what, status, name, want)
	}
}

// Everything that a's authenticator holds is tried at b's door, at STS and at the account: the tokens it was shown,
// what it was answered about them, and its files.
func TestWhatOneClustersAuthenticatorHoldsIsWorthNothingElsewhere(t *testing.T) {
	account := newMusterAccount(t)
	a, b := account.door(t, "a", "a"), account.door(t, "b", "b")
	now := time.Now()
	tokenA, tokenB := ststest.Token(t, account.user, "a", now), ststest.Token(t, account.user, "b", now)
	a.says(t, "a's token at a", tokenA, http.StatusOK)
	b.says(t, "b's token at b", tokenB, http.StatusOK)

	b.says(t, "a's token at b", tokenA, http.StatusForbidden)
	a.says(t, "b's token at a", tokenB, http.StatusForbidden)
	b.says(t, "a's token at b, again", tokenA, http.StatusForbidden)
	account.door(t, "a", "b").says(t, "b's token at an authenticator of a that says it is b's", tokenB, http.StatusForbidden)

	parsedA, parsedB := ststest.Parsed(t, tokenA, "a", now), ststest.Parsed(t, tokenB, "b", now)
	client := func(socket string, credential keyservicetest.Credential) *keyservice.Client {
		c, err := keyservice.NewClient(keyservice.ClientConfig{Socket: socket, Credential: keyservice.Credential(credential), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	for name, test := range map[string]struct {
		credential keyservicetest.Credential
		cluster    string
		token      ststoken.Token
		rule       string // empty: it is answered
	}{
		"a about a's token":              {a.credential, "a", parsedA, ""},
		"a about b's token":              {a.credential, "b", parsedB, "cluster"},
		"a about b's token, called its":  {a.credential, "a", parsedB, "signature"},
		"a about its token, called b's":  {a.credential, "b", parsedA, "cluster"},
		"b about a's token":              {b.credential, "a", parsedA, "cluster"},
		"b about a's token, called its":  {b.credential, "b", parsedA, "signature"},
		"b about a token for no cluster": {b.credential, "", parsedB, "cluster"},
	} {
		got, err := client(account.identity, test.credential).Verify(t.Context(), keyservice.Question{Cluster: test.cluster, Host: test.token.Host, Query: test.token.Query})
		no, _ := errors.AsType[*keyservice.Unknown](err)
		if test.rule == "" && (err != nil || got.ARN != "arn:aws:iam::000000000000:user/admin") || test.rule != "" && (no == nil || no.Rule != test.rule) {
			t.Errorf("%s: %+v, %v; want rule %q", name, got, err, test.rule)
		}
	}
	if got, err := client(account.metadata, a.credential).RoleCredentials(t.Context(), "i-0123456789abcdef0"); err == nil {
		t.Errorf("a's authenticator has %s", got)
	}

	// The answers say who somebody is, and have nothing to sign with.
	var fields []string
	for field := range reflect.TypeFor[keyservice.Answer]().Fields() {
		fields = append(fields, field.Name)
	}
	if want := []string{"ARN", "Account", "UserID", "SessionName", "Instance", "Machine", "ValidUntil"}; !slices.Equal(fields, want) {
		t.Errorf("an answer has %v, and not %v: is any of it worth something at another cluster's door?", fields, want)
	}

	// The token at STS: it is a GetCallerIdentity by itself, and neither for another cluster nor anything else.
	at := func(query, cluster string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, account.sts.URL+"/?"+query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = parsedA.Host
		r.Header.Set(ststoken.ClusterHeader, cluster)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		raw, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(raw)
	}
	for name, said := range map[string]func() (int, string){
		"for b": func() (int, string) { return at(parsedA.Query, "b") },
		"for another service": func() (int, string) {
			return at(strings.NewReplacer("2011-06-15", "2010-05-08", "GetCallerIdentity", "ListUsers").Replace(parsedA.Query), "a")
		},
		"for another action": func() (int, string) {
			return at(strings.Replace(parsedA.Query, "GetCallerIdentity", "GetSessionToken", 1), "a")
		},
	} {
		if status, body := said(); status < 400 || status >= 500 || !strings.Contains(body, "<Error>") {
			t.Errorf("STS takes a's token %s: %d %s", name, status, body)
		}
	}

	// Its certificates at b's door, which lets in b's API server alone.
	roots := x509.NewCertPool()
	raw, err := os.ReadFile(filepath.Join(b.state, authenticatorconfig.CertificateFile))
	if err != nil {
		t.Fatal(err)
	}
	roots.AppendCertsFromPEM(raw)
	file := func(name string) string { return filepath.Join(a.state, name) }
	for name, pair := range map[string][2]string{
		"its credential at the account": {a.credential.File, a.credential.File}, "what it serves with": {file(authenticatorconfig.CertificateFile), file(authenticatorconfig.KeyFile)},
		"its API server's": {file("client.pem"), file("client-key.pem")},
	} {
		own, err := tls.LoadX509KeyPair(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		c, err := tls.Dial("tcp", b.Address().String(), &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }})
		if err == nil {
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			_, err = c.Read(make([]byte, 1)) // TLS 1.3 says no after the handshake
			_ = c.Close()
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s opens b's door: %v", name, err)
		}
	}
	held := map[string]bool{}
	for _, dir := range []string{a.state, filepath.Dir(a.credential.File)} {
		if err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && dir == a.state {
				held[filepath.Base(path)] = true
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tried := range []string{"certificate.pem", "key.pem", "client.pem", "client-key.pem", "client-ca.pem", "kubeconfig"} {
		delete(held, tried)
	}
	if len(held) > 0 {
		t.Errorf("a holds files of which nobody tried what they are worth: %v", slices.Sorted(maps.Keys(held)))
	}
}

// A machine of a and one of b have the same role, which both clusters take for that of their nodes. With its
// credentials a's machine signs a token for b.
func TestAMachineOfOneClusterIsNoNodeOfAnother(t *testing.T) {
	account := newMusterAccount(t)
	a, b := account.door(t, "a", "a"), account.door(t, "b", "b")
	credentials, err := account.service.RoleCredentials(t.Context(), "i-0123456789abcdef0")
	if err != nil {
		t.Fatal(err)
	}
	machine := ststest.Key{ID: credentials.AccessKeyID, Secret: credentials.SecretAccessKey, Session: credentials.SessionToken}
	now := time.Now()
	if status, name := reviewOf(t, a.Server, a.state, ststest.Token(t, machine, "a", now)); status != http.StatusOK || name != "system:node:ip-192-168-64-11.eu-west-1.compute.internal" {
		t.Errorf("at home: %d %q", status, name)
	}
	token := ststest.Token(t, machine, "b", now)
	for range 2 { // the second time it is remembered
		status, name, why := reasonOf(t, b.Server, b.state, token)
		if status != http.StatusForbidden || why.Rule != "machine-cluster" || !strings.Contains(why.Saw, `launched for cluster "a", and this is cluster "b"`) || why.Fix == "" {
			t.Errorf("at the other cluster: %d %q, by %+v", status, name, why)
		}
	}
}

// While the account is away a token that was verified before is good, and no other: there is no key to check one with.
func TestAnOutageOfTheAccountIsOneOfNewTokens(t *testing.T) {
	account := newMusterAccount(t)
	a := account.door(t, "a", "a")
	now := time.Now()
	before, other := ststest.Token(t, account.user, "a", now), ststest.Token(t, account.user, "a", now.Add(-time.Second))
	a.says(t, "a token", before, http.StatusOK)
	account.end()
	for range 3 {
		a.says(t, "a token that was verified before", before, http.StatusOK)
		a.says(t, "another of the same user", other, http.StatusServiceUnavailable)
	}
}
