// SPDX-License-Identifier: Apache-2.0

package authenticatorserver

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/iam/tokenverify/ststest"
	"muster.dev/muster/internal/platform/leaderlease"
)

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

// Beside a new cluster the authenticator starts before its rights are there, and API servers see one of them after the
// other.
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

// In an outage a replica loses its lease while nobody can take it over. It is the same replica afterwards, and does not
// wait for itself.
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
			go func() { defer close(ended); _ = l.run(ctx) }() // it is ended below, and may complain of that
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
