// SPDX-License-Identifier: Apache-2.0

package serviceaccounts

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"syscall"
	"time"

	"muster.dev/muster/internal/plane/podidentity"
)

const (
	// associationLook is how often webhooks are looked at that may have begun meanwhile, or lost what they were told.
	associationLook = 2 * time.Second
	// associationRetry is the pause before a webhook is told again that did not answer. The first list is waited for.
	associationRetry = 250 * time.Millisecond
)

// TellWebhooks tells the pod identity webhook of each cluster which service accounts have an association, until the
// context ends. No webhook waits for another.
func (p Pods) TellWebhooks(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	tellers := map[*podidentity.Webhook]teller{}
	for ctx.Err() == nil {
		gone := maps.Clone(tellers)
		for _, known := range p.Running() {
			if known.name() == "" || !known.Specs.VPC || known.Webhook == nil {
				continue // it has not begun, or has no webhook
			}
			t, ok := tellers[known.Webhook]
			if !ok {
				of, end := context.WithCancel(ctx)
				t = teller{make(chan struct{}, 1), end}
				tellers[known.Webhook] = t
				log := p.Log.With("cluster", known.Specs.Dir.Namespace())
				group.Go(func() { keepTold(of, log, t.wake, func(ctx context.Context) error { return p.tell(ctx, known) }) })
			}
			delete(gone, known.Webhook)
			select {
			case t.wake <- struct{}{}:
			default: // it is about to look anyway
			}
		}
		for webhook, t := range gone {
			t.end()
			delete(tellers, webhook)
		}
		select {
		case <-ctx.Done():
		case <-p.Associations.Changed():
		case <-time.After(associationLook):
		}
	}
}

// teller is the loop that keeps one webhook told.
type teller struct {
	wake chan struct{}
	end  context.CancelFunc
}

// keepTold tells a webhook each time that it is woken up, and again while it fails, until the context ends. While
// associations are not known yet it says nothing, nor while the webhook does not listen: then the status says that the
// webhook does not run.
func keepTold(ctx context.Context, log *slog.Logger, wake <-chan struct{}, tell func(context.Context) error) {
	said := ""
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-again:
		}
		again = nil
		err := tell(ctx)
		if err == nil {
			said = ""
			continue
		}
		again = time.After(associationRetry)
		quiet := ctx.Err() != nil || errors.Is(err, podidentity.ErrNotReady) || errors.Is(err, syscall.ECONNREFUSED)
		if !quiet && err.Error() != said {
			log.Warn("the pod identity webhook is not told of associations", "error", err)
			said = err.Error()
		}
	}
}

func (p Pods) tell(ctx context.Context, known Cluster) error {
	accounts, err := p.Associations.ServiceAccounts(podidentity.Cluster{Name: known.name(), Namespace: known.Specs.Dir.Namespace()})
	if err != nil {
		return err
	}
	return known.Webhook.Tell(ctx, accounts, time.Now())
}
