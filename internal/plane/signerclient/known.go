// SPDX-License-Identifier: Apache-2.0

package signerclient

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/tokenkeys"
)

const (
	// interval is how often a signer is asked, and retry how often while it does not answer.
	interval, retry = 15 * time.Second, 2 * time.Second
)

// ErrUnknown means that a signer has not told of its keys yet.
var ErrUnknown = errors.New("the token signer has not told of its keys yet")

// Known is what a cluster's signer last told of its keys. It is safe for use by many at once.
type Known struct {
	config component.Config
	client client
	log    *slog.Logger

	asking sync.Mutex // so that an older answer does not replace a newer one

	mu   sync.Mutex
	ring tokenkeys.Ring
	told bool
}

// New reads the list that was kept. Nothing is asked yet.
func New(c component.Config, log *slog.Logger) *Known {
	k := &Known{config: c, client: newClient(c), log: log}
	if ring, err := tokenkeys.ReadPublic(c.Dir.TokenKeys()); err == nil { // else the signer tells
		k.ring, k.told = ring, true
	}
	return k
}

// Ring is the last list. The error is ErrUnknown before the first one.
func (k *Known) Ring() (tokenkeys.Ring, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.told {
		return tokenkeys.Ring{}, ErrUnknown
	}
	return k.ring, nil
}

// Run asks the signer again and again, until the context ends.
func (k *Known) Run(ctx context.Context) {
	defer k.client.http.CloseIdleConnections()
	said := ""
	for ctx.Err() == nil {
		pause := interval
		switch err := k.look(ctx); {
		case err == nil:
			said = ""
		case ctx.Err() == nil:
			pause = retry
			if said != err.Error() {
				k.log.Warn("the token signer does not tell of its keys: the last ones that it told hold", "error", err)
				said = err.Error()
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (k *Known) look(ctx context.Context) error {
	k.asking.Lock()
	defer k.asking.Unlock()
	ring, err := k.client.keys(ctx)
	if err != nil {
		return err
	}
	return k.keep(ring)
}

// keep takes a list that the signer has told.
func (k *Known) keep(ring tokenkeys.Ring) error {
	k.mu.Lock()
	k.ring, k.told = ring, true
	k.mu.Unlock()
	return errors.Join(tokenkeys.WritePublic(k.config.Dir.TokenKeys(), ring), tokenkeys.Forget(k.config, ring, time.Now()))
}

// Rotate has the signer add a key that signs after a notice, unless one that does not sign yet is published already,
// and returns the keys that it has then. The error is *[tokenkeys.Refused] if it will not.
func (k *Known) Rotate(ctx context.Context, notice time.Duration) (tokenkeys.Ring, error) {
	k.asking.Lock()
	defer k.asking.Unlock()
	ring, err := k.client.keys(ctx)
	if err != nil {
		return tokenkeys.Ring{}, err
	}
	next, err := k.client.rotate(ctx, tokenkeys.Order{After: ring.Last().ID, Notice: notice})
	if err != nil {
		return tokenkeys.Ring{}, err
	}
	if err := k.keep(next); err != nil {
		k.log.Error("what the token signer tells cannot be kept", "error", err) // it is tried again
	}
	if added := next.Last(); added.ID != ring.Last().ID {
		k.log.Info("published another key of service account tokens", "key", added.ID, "signs", added.Signs)
	}
	return next, nil
}
