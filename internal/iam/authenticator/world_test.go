// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

const cluster = "demo"

// believer is a verifier that believes every token, unless it is told otherwise.
type believer struct {
	calls atomic.Int64
	mu    sync.Mutex
	err   error
	hold  chan struct{}
	life  time.Duration
	// outage is how long an answer may be used while nobody can tell.
	outage time.Duration
	// more changes an identity.
	more func(*tokenverify.Identity)
	// admitted are the access keys that were let in.
	admitted map[string]bool
}

func (b *believer) Admit(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.admitted == nil {
		b.admitted = map[string]bool{}
	}
	b.admitted[key] = true
}

func (b *believer) Admitted(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.admitted[key]
}

func (b *believer) Verify(_ context.Context, t ststoken.Token) (tokenverify.Identity, error) {
	b.calls.Add(1)
	b.mu.Lock()
	err, hold, life, more := b.err, b.hold, b.life, b.more
	b.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if err != nil {
		return tokenverify.Identity{}, err
	}
	id := tokenverify.Identity{ValidUntil: t.Expires}
	if life > 0 {
		id.ValidUntil = t.Signed.SignedAt.Add(life)
	}
	if b.outage > 0 {
		id.OutageUntil = t.Signed.SignedAt.Add(b.outage)
	}
	a, parseErr := arn.Parse("arn:aws:iam::111122223333:user/alice")
	if parseErr != nil {
		return id, parseErr
	}
	id.ARN, id.CanonicalARN, id.Account, id.UserID, id.AccessKeyID = a, a, "111122223333", "AIDA0000000000000001", t.Signed.AccessKeyID
	if more != nil {
		more(&id)
	}
	return id, nil
}

func (b *believer) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// logs may be written while they are read.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// world is an authenticator with everything around it.
type world struct {
	*Authenticator
	verifier *believer
	table    atomic.Pointer[identity.Table]
	registry *prometheus.Registry
	logs     logs
	clock    atomic.Int64 // nanoseconds after the start
	start    time.Time
}

func (w *world) now() time.Time          { return w.start.Add(time.Duration(w.clock.Load())) }
func (w *world) advance(d time.Duration) { w.clock.Add(int64(d)) }

func (w *world) token(t testing.TB, name string, n int) string {
	t.Helper()
	return ststest.Token(t, ststest.User(name, n), cluster, w.start)
}

func newWorld(t testing.TB, change func(*Config)) *world {
	t.Helper()
	w := &world{verifier: &believer{}, registry: prometheus.NewRegistry(), start: time.Now().Truncate(time.Second)}
	w.mapTo(t, "alice")
	c := Config{
		ClusterID: cluster, Hosts: ststest.Hosts(t), Verifier: w.verifier, Table: w.table.Load, Metrics: NewMetrics(w.registry),
		Logger: slog.New(slog.NewTextHandler(&w.logs, nil)), Now: w.now,
	}
	if change != nil {
		change(&c)
	}
	var err error
	if w.Authenticator, err = New(c); err != nil {
		t.Fatal(err)
	}
	return w
}

// mapTo maps the believer's user to a name; nobody is mapped if it is empty.
func (w *world) mapTo(t testing.TB, name string) {
	t.Helper()
	var mappings []identity.Mapping
	if name != "" {
		mappings = append(mappings, identity.Mapping{
			Source: identity.SourceAWSAuth, Entry: "mapUsers[0]", Kind: identity.KindUser, ARN: "arn:aws:iam::111122223333:user/alice", Username: name, Groups: []string{"devs"},
		})
	}
	table, problems := identity.NewTable(identity.Options{}, nil, mappings)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w.table.Store(&table)
}

func (w *world) user(t testing.TB, token string) string {
	t.Helper()
	d := w.Authenticate(t.Context(), token)
	if d.Status != 200 {
		return fmt.Sprintf("%d %s", d.Status, d.Rule)
	}
	return d.User.Name
}
