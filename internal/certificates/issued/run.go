// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"context"
	"fmt"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"muster.dev/muster/internal/certificates/facts"
)

// Run reads what is on record, keeps it up to date and writes what is added, until ctx is done; then it writes the
// rest. Only the leader should run it: two that do neither lose nor double anything, but write more often than they
// need to.
func (r *Register) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { r.reflect(ctx) })
	defer group.Wait()
	if !r.rebuild(ctx) {
		return // entries that were added without being read live on in their requests
	}
	r.notify(facts.Change{All: true})
	if r.config.ReadOnly {
		<-ctx.Done()
		return
	}
	r.keepUp(ctx)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.config.Grace)
	defer cancel()
	r.flushed(r.flush(last))
}

// rebuild waits for the segments, then reads the requests that are still there: a certificate that was issued just
// before a crash is in them alone. It reports false if ctx is done before.
func (r *Register) rebuild(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-r.listed:
	}
	const first, most = time.Second, 30 * time.Second
	for delay := first; ; delay = min(2*delay, most) {
		err := r.observeAll(ctx)
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			r.config.Logger.Warn("certificate signing requests not readable", "error", err)
			r.fails(err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(delay):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.synced, r.trouble = true, ""
	return true
}

// observeAll reads requests in pages: thousands of them at once would be the most memory that the program ever takes.
func (r *Register) observeAll(ctx context.Context) error {
	requests := r.config.Client.CertificatesV1().CertificateSigningRequests()
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return requests.List(ctx, o) })
	p.PageSize = 200
	err := p.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if csr, ok := o.(*certificatesv1.CertificateSigningRequest); ok {
			r.Observe(csr)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading certificate signing requests: %w", err)
	}
	return nil
}

// keepUp writes and compacts until ctx is done.
func (r *Register) keepUp(ctx context.Context) {
	compact := time.NewTicker(r.config.CompactEvery)
	defer compact.Stop()
	heal := time.NewTicker(r.config.HealEvery)
	defer heal.Stop()
	var compacted time.Time
	tidy := func() {
		compacted = r.config.Now()
		if err := r.compact(ctx); err != nil && ctx.Err() == nil {
			r.config.Logger.Warn("register not compacted", "error", err)
		}
	}
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-compact.C:
			tidy()
			continue
		case <-heal.C:
			if err := r.heal(ctx); err != nil && ctx.Err() == nil {
				r.config.Logger.Warn("register not completed", "error", err)
			}
			continue
		case <-r.wake:
		}
		select { // others may come meanwhile, and are written with it
		case <-ctx.Done():
			return
		case <-time.After(r.pause(failures)):
		}
		err := r.flush(ctx)
		if ctx.Err() != nil {
			return
		}
		r.flushed(err)
		if failures++; err == nil {
			failures = 0
		}
		if err == nil && r.segmentsBegun() && r.config.Now().Sub(compacted) > time.Minute {
			tidy()
		}
	}
}

// pause is how long to wait before the next write: twice as long after each failure, up to half a minute.
func (r *Register) pause(failures int) time.Duration {
	const most = 30 * time.Second
	d := r.config.FlushEvery
	for ; failures > 0 && d < most; failures-- {
		d *= 2
	}
	return max(min(d, most), r.config.FlushEvery)
}

// segmentsBegun reports whether a segment was begun since the last call: the one before is full, and may be wasteful.
func (r *Register) segmentsBegun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	begun := r.begun
	r.begun = false
	return begun
}

// flushed tells people how the last write went, and its waiting callers that answers can be given again.
func (r *Register) flushed(err error) {
	r.mu.Lock()
	was, n := r.failure, len(r.pending.entries)
	r.failure = err
	r.full = n > r.config.MaxPending
	cleared := r.cleared()
	if err != nil {
		r.awake()
	}
	r.mu.Unlock()
	switch {
	case err != nil && (was == nil || was.Error() != err.Error()):
		r.config.Logger.Error("issued certificates not recorded, trying again", "pending", n, "error", err)
	case err == nil && was != nil:
		r.config.Logger.Info("issued certificates recorded again")
	}
	if cleared {
		r.notify(facts.Change{All: true})
	}
}
