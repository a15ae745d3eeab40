// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// idleAfter asks so many hosts, each of them so many times at once.
func idleAfter(t *testing.T, connections, hosts, atOnce int) *direct {
	t.Helper()
	d := newDirect(&tls.Config{MinVersion: tls.VersionTLS12}, connections, http.Header{})
	d.sweepTime = time.Hour
	for range hosts {
		var together sync.WaitGroup // so that each has a connection of its own
		together.Add(atOnce)
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			together.Done()
			together.Wait()
			_, _ = w.Write([]byte("{}"))
		}))
		t.Cleanup(server.Close)
		d.tls.RootCAs = x509.NewCertPool()
		d.tls.RootCAs.AddCert(server.Certificate())
		to, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range atOnce {
			group.Go(func() {
				if r, err := d.ask(t.Context(), to, "sts.example", "a=b"); err != nil || string(r.body) != "{}" {
					t.Errorf("%q, %v", r.body, err)
				}
			})
		}
		group.Wait()
	}
	return d
}

func (d *direct) count() (hosts, idle int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.hosts {
		idle += len(p.idle)
	}
	if idle != d.idle {
		return len(d.hosts), -1
	}
	return len(d.hosts), idle
}

func TestConnectionsThatNobodyUsesAreClosed(t *testing.T) {
	d := idleAfter(t, 2, 2, 2)
	if hosts, idle := d.count(); hosts != 2 || idle != 4 {
		t.Fatalf("%d hosts and %d idle connections", hosts, idle)
	}
	d.sweep()
	if hosts, idle := d.count(); hosts != 2 || idle != 4 || !d.sweeping {
		t.Errorf("after a sweep that came too early: %d hosts and %d idle connections", hosts, idle)
	}
	d.sweepTime = 0
	d.sweep()
	if hosts, idle := d.count(); hosts != 0 || idle != 0 || d.sweeping {
		t.Errorf("after a sweep: %d hosts and %d idle connections", hosts, idle)
	}
}

func TestTheOldestIdleConnectionsMakeRoom(t *testing.T) {
	d := idleAfter(t, 2, 7, 2)
	if _, idle := d.count(); idle != 8 { // 4 x 2
		t.Errorf("%d idle connections of 14", idle)
	}
	if hosts, _ := d.count(); hosts != 4 {
		t.Errorf("the idle connections are of %d hosts, so that it was not the oldest that went", hosts)
	}
	d.close()
	if hosts, idle := d.count(); hosts != 0 || idle != 0 {
		t.Errorf("after the end: %d hosts and %d idle connections", hosts, idle)
	}
}

func TestWhatIsNoPartOfARequestIsNotSent(t *testing.T) {
	d := newDirect(&tls.Config{MinVersion: tls.VersionTLS12}, 1, http.Header{})
	to := &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	for _, bad := range []string{"a b", "a\r\nX: y", "a\x00", "ä", "a\x7f"} {
		for _, where := range [][2]string{{bad, "a=b"}, {"sts.example", bad}} {
			if _, err := d.ask(t.Context(), to, where[0], where[1]); err != errUnfit { //nolint:errorlint // it is this one
				t.Errorf("host %q, query %q: %v", where[0], where[1], err)
			}
		}
	}
	if _, err := d.ask(t.Context(), to, "sts.example", "a=b"); err == nil || err == errUnfit { //nolint:errorlint // it is another one
		t.Errorf("what is a part of a request: %v", err)
	}
	if hosts, _ := d.count(); hosts != 0 {
		t.Error("a host to which there is no connection is remembered")
	}
}
