// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The informer holds three requests of one node while its handler has seen none: without its newer ones the oldest
// would be approved.
func TestNothingIsDecidedBeforeAllRequestsAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := prepareWorld(t)
		w.config.Metrics = prometheus.NewRegistry()
		for n := range 3 {
			w.create(serving(t, fmt.Sprint("csr-", n), 11, address(11)))
			<-time.After(time.Second) // the order of their creation
		}
		var hold atomic.Bool
		goOn := make(chan struct{})
		release := sync.OnceFunc(func() { close(goOn) })
		w.config.Now = func() time.Time { // the handler is the first to ask for the time after New
			if hold.CompareAndSwap(true, false) {
				<-goOn
			}
			return time.Now()
		}
		var err error
		if w.Controller, err = New(w.config); err != nil {
			t.Fatal(err)
		}
		hold.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		defer group.Wait()
		defer cancel()
		defer release()
		group.Go(func() { w.Watch(ctx) })
		synctest.Wait()
		group.Go(func() { w.Lead(ctx) })
		<-time.After(2 * factsWait)
		if !w.informer.HasSynced() || hold.Load() {
			t.Fatal("the handler is not behind the informer")
		}
		if w.Ready() == nil {
			t.Error("it is ready")
		}
		for n := range 3 {
			if got := w.state(fmt.Sprint("csr-", n)); got != "" {
				t.Errorf("csr-%d is %q", n, got)
			}
		}
		release()
		w.becomes("csr-2", wasIssued)
		w.until("the oldest is deleted", func() bool { return w.deletions() == 1 })
		if err := w.Ready(); err != nil {
			t.Error(err)
		}
	})
}
