// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go"

	"muster.dev/muster/internal/aws/awsfront"
	own "muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
)

const (
	account = identityservice.DefaultAccount
	region  = "eu-west-1"
)

// world is a service with one administrator, whose clock stands where the SDKs' does unless it is moved.
type world struct {
	t         testing.TB
	store     *identityservicetest.Memory
	service   *identityservice.Service
	front     *awsfront.Front
	others    map[string]http.Handler // of services that the front has not, by the name that requests are signed for
	url       string
	instances *instances
	log       *log
	key       own.AccessKey // of the administrator

	mu    sync.Mutex
	ahead time.Duration
}

// log is what the service wrote.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

type instance struct{ profile, name, cluster string }

type instances struct {
	mu  sync.Mutex
	all map[string]instance
	// fargate are the ids of those that were made for a pod on Fargate.
	fargate map[string]bool
}

func (i *instances) Lookup(id string) (identityservice.Instance, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	found, ok := i.all[id]
	return identityservice.Instance{Profile: found.profile, PrivateDNSName: found.name, Cluster: found.cluster, Fargate: i.fargate[id]}, ok
}

func (i *instances) set(id string, to instance) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if to == (instance{}) {
		delete(i.all, id)
		return
	}
	i.all[id] = to
}

// newWorld makes a world; change may be nil.
func newWorld(t testing.TB, change func(*identityservice.Config)) *world {
	t.Helper()
	return newWorldWith(t, 0, change)
}

// newWorldWith makes a world whose front takes so many connections at once.
func newWorldWith(t testing.TB, connections int, change func(*identityservice.Config)) *world {
	t.Helper()
	w := &world{t: t, others: map[string]http.Handler{}, store: identityservicetest.NewMemory(), instances: &instances{all: map[string]instance{}}, log: &log{}}
	dir := t.TempDir()
	sealer, err := identityservice.OpenSealer(filepath.Join(dir, "session-keys.json"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	config := identityservice.Config{
		Store: w.store, Sealer: sealer, Instances: w.instances, Region: region, Log: slog.New(slog.NewTextHandler(w.log, nil)), Now: w.now,
	}
	if change != nil {
		change(&config)
	}
	if w.service, err = identityservice.New(config); err != nil {
		t.Fatal(err)
	}
	if made, err := identityservice.First(t.Context(), w.store, account, filepath.Join(dir, "credentials"), config.Now()); err != nil || !made {
		t.Fatal(made, err)
	}
	state, err := w.store.State()
	if err != nil {
		t.Fatal(err)
	}
	admin, _ := state.User(account, identityservice.FirstUserName)
	w.key = state.KeysOf(admin.ID)[0]
	if w.front, err = w.service.Front(awsfront.Config{Log: config.Log, Connections: connections}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		for name, other := range w.others {
			if strings.Contains(r.Header.Get("Authorization"), "/"+name+"/aws4_request") {
				other.ServeHTTP(answer, r)
				return
			}
		}
		w.front.ServeHTTP(answer, r)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

func (w *world) move(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead += d
}

// signer are the credentials of one call.
type signer struct{ id, secret, token string }

func (s signer) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: s.id, SecretAccessKey: s.secret, SessionToken: s.token}, nil
}

func (w *world) admin() signer { return signer{id: w.key.ID, secret: w.key.Secret.Reveal()} }

func session(c *ststypes.Credentials) signer {
	return signer{*c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken}
}

func (w *world) config(s signer) aws.Config {
	return aws.Config{
		Region: region, BaseEndpoint: &w.url, Credentials: s,
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
	}
}

func (w *world) sts(s signer) *sts.Client { return sts.NewFromConfig(w.config(s)) }

func (w *world) iam(s signer) *iam.Client { return iam.NewFromConfig(w.config(s)) }

// user makes a user with a key.
func (w *world) user(name string) signer {
	w.t.Helper()
	admin := w.iam(w.admin())
	if _, err := admin.CreateUser(w.t.Context(), &iam.CreateUserInput{UserName: &name}); err != nil {
		w.t.Fatal(err)
	}
	key, err := admin.CreateAccessKey(w.t.Context(), &iam.CreateAccessKeyInput{UserName: &name})
	if err != nil {
		w.t.Fatal(err)
	}
	return signer{id: *key.AccessKey.AccessKeyId, secret: *key.AccessKey.SecretAccessKey}
}

// role makes a role.
func (w *world) role(name, trust string) {
	w.t.Helper()
	if _, err := w.iam(w.admin()).CreateRole(w.t.Context(), &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: &trust}); err != nil {
		w.t.Fatal(err)
	}
}

func trusting(kind, who string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"` + kind + `":"` + who + `"},"Action":"sts:AssumeRole"}]}`
}

func roleARN(name string) *string { return aws.String("arn:aws:iam::" + account + ":role/" + name) }

// code is the error code of an answer, "" for none.
func code(err error) string {
	var api smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &api):
		return api.ErrorCode()
	}
	return err.Error()
}

func (w *world) wants(what string, err error, want string) {
	w.t.Helper()
	if got := code(err); got != want {
		w.t.Errorf("%s: %q (%v), want %q", what, got, err, want)
	}
}

func must[T any](w *world) func(T, error) T {
	return func(v T, err error) T {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
		return v
	}
}
