// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// soon is how late a revocation may be told, with room for a busy machine.
const soon = time.Second

func within(t *testing.T, events <-chan Event, what string) {
	t.Helper()
	select {
	case e := <-events:
		if e.Empty() {
			t.Errorf("%s: %+v", what, e)
		}
	case <-time.After(soon):
		t.Errorf("%s: nothing was told within %s", what, soon)
	}
}

// A client that does not read what it asked for neither holds a revocation back nor gets what is not true any more.
func TestWhoDoesNotReadHoldsNobodyUp(t *testing.T) {
	var answered atomic.Int64
	b := &backend{resolve: func(context.Context, string) (Maker, error) {
		answered.Add(1)
		return Maker{ARN: strings.Repeat("a", MaxAnswer/2), Account: "b", UserID: "c", ValidUntil: time.Unix(1, 0)}, nil
	}}
	_, h := serverOf(t, b, time.Hour)
	events := eventsOf(t, h)
	hung, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hung.Close() }()
	go func() { // until what it does not read fills all buffers
		for {
			if _, err := fmt.Fprintf(hung, "POST %s HTTP/1.1\r\nHost: identity\r\nContent-Length: 18\r\n\r\n{\"cluster\":\"demo\"}", PathVerify); err != nil {
				return
			}
		}
	}()
	for before := int64(-1); before != answered.Load() || before == 0; {
		before = answered.Load()
		<-time.After(50 * time.Millisecond)
	}
	began := time.Now()
	b.tell(Change{UserIDs: []string{"AIDA"}})
	within(t, events, "somebody does not read")
	if took := time.Since(began); took < fenceTime/2 {
		t.Fatalf("the event came after %s, so nobody was in its way", took)
	}
	_ = hung.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.Copy(io.Discard, hung); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("the connection is still there: %v", err)
	}
}

// A lookup from before a change that took too long is not an answer any more.
func TestWhatWasLookedUpTooLongAgoIsNoAnswer(t *testing.T) {
	asked, hold := make(chan struct{}, 1), make(chan struct{})
	b := &backend{resolve: func(_ context.Context, id string) (Maker, error) {
		if id == "slow" {
			asked <- struct{}{}
			<-hold
		}
		return Maker{ARN: "a", Account: "b", UserID: "c", ValidUntil: time.Unix(1, 0)}, nil
	}}
	s, h := serverOf(t, b, time.Hour)
	events := eventsOf(t, h)
	ask := func(id string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+PathVerify, strings.NewReader(`{"cluster":"demo","query":"`+id+`"}`))
		if err != nil {
			return 0
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	slow := make(chan int, 1)
	go func() { slow <- ask("slow") }()
	<-asked
	b.tell(Change{UserIDs: []string{"AIDA"}})
	began := time.Now()
	if status := ask("quick"); status != http.StatusOK || time.Since(began) > soon {
		t.Errorf("another question is answered %d after %s", status, time.Since(began))
	}
	within(t, events, "an answer takes long")
	close(hold)
	if status := <-slow; status != http.StatusServiceUnavailable {
		t.Errorf("what was looked up before the change is answered %d after its event", status)
	}
	if status := ask("quick"); status != http.StatusOK {
		t.Errorf("what is looked up after it is answered %d", status)
	}
	under := func() int {
		s.fence.mu.Lock()
		defer s.fence.mu.Unlock()
		return len(s.fence.all)
	}
	for end := time.Now().Add(5 * time.Second); under() > 0; <-time.After(time.Millisecond) { // they end after their clients have them
		if time.Now().After(end) {
			t.Fatalf("%d answers are still under way", under())
		}
	}
}
