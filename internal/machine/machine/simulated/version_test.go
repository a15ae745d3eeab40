// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// versionServer counts how often it is asked for its version.
type versionServer struct{ asked atomic.Int32 }

func (s *versionServer) RoundTrip(*http.Request) (*http.Response, error) {
	s.asked.Add(1)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"gitVersion":"v1.36.3"}`))}, nil
}

// Nodes that come in together ask for the API server's version once; a later one asks anew, since it may be another.
func TestVersionIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &versionServer{}
		s := &Simulator{known: knownVersion{turn: make(chan struct{}, 1)}}
		ask := func() {
			if version, err := s.serverVersion(t.Context(), server); err != nil || version != "v1.36.3" {
				t.Errorf("version is %q, %v", version, err)
			}
		}
		for range 100 {
			go ask()
		}
		synctest.Wait()
		if n := server.asked.Load(); n != 1 {
			t.Errorf("100 nodes asked %d times, want once", n)
		}
		<-time.After(versionGood)
		if ask(); server.asked.Load() != 2 {
			t.Errorf("a later node was told what an earlier one heard")
		}
	})
}
