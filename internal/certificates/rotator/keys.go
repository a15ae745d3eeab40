// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"sync"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotation"
)

// Keys is the store of keys and certificates with one writer at a time: the files that follow from a record must not be
// written from an older one.
type Keys struct {
	authority.Store

	mu sync.Mutex
}

// NewKeys returns the store with one writer at a time.
func NewKeys(store authority.Store) *Keys { return &Keys{Store: store} }

// Ensure makes and renews authorities and credentials, as [authority.Store.Ensure] does.
func (k *Keys) Ensure(credentials []authority.Credential, now time.Time) ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Store.Ensure(credentials, now)
}

// StartRotation begins a rotation, as [authority.Store.StartRotation] does.
func (k *Keys) StartRotation(now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Store.StartRotation(now)
}

// Advance moves a rotation on, as [authority.Store.Advance] does.
func (k *Keys) Advance(before, r rotation.Rotation, now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Store.Advance(before, r, now)
}

// Ask carries out a request about kubelets' authorities, as [authority.Store.Ask] does.
func (k *Keys) Ask(q authority.Request, now time.Time) (refused string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Store.Ask(q, now)
}
