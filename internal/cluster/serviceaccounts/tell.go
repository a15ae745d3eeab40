// SPDX-License-Identifier: Apache-2.0

package serviceaccounts

import (
	"context"
	"errors"
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
// context ends.
func (p Pods) TellWebhooks(ctx context.Context) {
	said := ""
	for ctx.Err() == nil {
		next := associationLook
		waits, err := p.tellAll(ctx)
		if err != nil && err.Error() != said {
			p.Log.Warn("pod identity webhooks are not told of associations", "error", err)
			said = err.Error()
		}
		if waits || err != nil {
			next = associationRetry
		}
		select {
		case <-ctx.Done():
		case <-p.Associations.Changed():
		case <-time.After(next):
		}
	}
}

// tellAll tells all webhooks at once, so that none waits for another. It reports whether the associations are not known
// yet, or a webhook does not listen: then the status says that this one does not run.
func (p Pods) tellAll(ctx context.Context) (waits bool, err error) {
	if !p.Associations.HasSynced() {
		return true, nil
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	for _, known := range p.Running() {
		if known.name() == "" || !known.Specs.VPC || known.Webhook == nil {
			continue // it has not begun, or has no webhook
		}
		group.Go(func() {
			accounts, problem := p.Associations.ServiceAccounts(podidentity.Cluster{Name: known.name(), Namespace: known.Specs.Dir.Namespace()})
			if problem == nil {
				problem = known.Webhook.Tell(ctx, accounts, time.Now())
			}
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(problem, syscall.ECONNREFUSED) {
				waits = true
				return
			}
			err = errors.Join(err, problem)
		})
	}
	group.Wait()
	return waits, err
}
