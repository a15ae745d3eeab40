// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/iam/ststoken"
)

// oneRegion is a world with one region; names of others are looked for in vain, which takes a while.
type oneRegion struct {
	mu    sync.Mutex
	asked map[string]int
	// lookup is how long it takes to find out that there is no such region; took how long its answer takes, fail what
	// comes instead.
	lookup, took time.Duration
	fail         error
}

const (
	realHost    = "sts.eu-west-1.amazonaws.com"
	anotherHost = "sts.eu-central-1.amazonaws.com"
)

func (o *oneRegion) ask(ctx context.Context, _ *url.URL, host, _ string) (response, error) {
	o.mu.Lock()
	o.asked[host]++
	wait, fail := o.took, o.fail
	if !strings.HasPrefix(host, "sts.eu-") {
		wait, fail = o.lookup, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	o.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return response{}, ctx.Err()
	}
	if fail != nil {
		return response{}, fail
	}
	return response{status: 200, body: []byte(`{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Account":"111122223333","Arn":"arn:aws:iam::111122223333:user/alice","UserId":"AIDA1"}}}`)}, nil
}

func (*oneRegion) close() {}

func (o *oneRegion) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

func (o *oneRegion) times(host string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[host]
}

func flooded(t *testing.T, o *oneRegion) *Remote {
	t.Helper()
	r, err := NewRemote(RemoteConfig{ClusterID: "demo", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	o.asked = map[string]int{}
	r.way = o
	return r
}

func at(host, key string) ststoken.Token {
	return ststoken.Token{Scheme: "https", Host: host, Query: "x=" + key, Expires: time.Now().Add(15 * time.Minute), Signed: sigv4.Signed{Credential: sigv4.Credential{AccessKeyID: key}}}
}

func invented(n int) ststoken.Token {
	return at(fmt.Sprintf("sts.us-invented-%d.amazonaws.com", n), fmt.Sprintf("AKIAINVENTED%04d", n))
}

func TestHostsThatThereAreNotStopNoneThatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oneRegion{}
		r := flooded(t, o)
		if _, err := r.Verify(t.Context(), at(realHost, "AKIA1")); err != nil {
			t.Fatal(err)
		}
		for n := range 3 * mostHosts {
			if _, err := r.Verify(t.Context(), invented(n)); err == nil {
				t.Fatal("a region that there is not has vouched for somebody")
			}
		}
		for _, host := range []string{realHost, anotherHost} { // a host that was asked before, and a new host
			if _, err := r.Verify(t.Context(), at(host, "AKIA2")); err != nil {
				t.Errorf("%s: %v", host, err)
			}
		}
		for range 20 { // and an invented host is left alone as any host that fails
			_, _ = r.Verify(t.Context(), invented(99999))
		}
		if asked := o.times("sts.us-invented-99999.amazonaws.com"); asked != breakAfter {
			t.Errorf("a host that there is not was asked %d times, want %d", asked, breakAfter)
		}
	})
}

// A key of a node that was just made is as unknown as those of strangers are.
func TestANewKeyDoesNotWaitForRegionsThatThereAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oneRegion{lookup: 100 * time.Millisecond, took: 20 * time.Millisecond}
		r := flooded(t, o)
		if _, err := r.Verify(t.Context(), at(realHost, "AKIA1")); err != nil {
			t.Fatal(err)
		}
		var flood sync.WaitGroup
		for n := range 2000 { // 1000 a second
			flood.Go(func() {
				time.Sleep(time.Duration(n) * time.Millisecond) //nolint:forbidigo // it is a synctest bubble
				_, _ = r.Verify(t.Context(), invented(n))
			})
		}
		time.Sleep(500 * time.Millisecond) //nolint:forbidigo // it is a synctest bubble
		for n := range 50 {
			began := time.Now()
			_, err := r.Verify(t.Context(), at(realHost, fmt.Sprintf("ASIANEW%d", n)))
			if took := time.Since(began); err != nil || took > 50*time.Millisecond {
				t.Errorf("new key %d took %s: %v", n, took, err)
			}
		}
		flood.Wait()
	})
}

func TestOnlyWhoIsLetInIsAskedForTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oneRegion{fail: errors.New("reset")}
		r := flooded(t, o)
		for admitted, want := range map[string]int{"AKIASTRANGER": 1, "AKIAKNOWN": 2} {
			if want == 2 {
				r.Admit(admitted)
			}
			before := o.times(realHost)
			if _, err := r.Verify(t.Context(), at(realHost, admitted)); err == nil {
				t.Fatal("nobody answered")
			}
			if asked := o.times(realHost) - before; asked != want {
				t.Errorf("%s: %d tries, want %d", admitted, asked, want)
			}
		}
	})
}

// When packets vanished, those of the question that is on its way are lost. Nobody waits for the end of its time when
// they do no more.
func TestABlackHoleIsOverSoonAfterItIs(t *testing.T) {
	for seconds := 30; seconds < 42; seconds += 3 { // somewhere in the time of a question that is on its way
		synctest.Test(t, func(t *testing.T) {
			o := &oneRegion{}
			r := flooded(t, o)
			var lost sync.WaitGroup
			ask := func() error {
				_, err := r.Verify(t.Context(), at(realHost, fmt.Sprintf("AKIA%d", time.Now().UnixNano())))
				return err
			}
			if err := ask(); err != nil {
				t.Fatal(err)
			}
			o.set(func() { o.took = time.Hour })
			for range 4 * seconds {
				lost.Go(func() { _ = ask() })
				time.Sleep(250 * time.Millisecond) //nolint:forbidigo // it is a synctest bubble
			}
			o.set(func() { o.took = 0 })
			over := time.Now()
			for ask() != nil {
				if time.Since(over) > 2*time.Second {
					t.Fatalf("after %d seconds it is over for two, and nobody found out", seconds)
				}
				time.Sleep(50 * time.Millisecond) //nolint:forbidigo // it is a synctest bubble
			}
			lost.Wait()
		})
	}
}
