// SPDX-License-Identifier: Apache-2.0

package tokenkeys

import (
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/iam/webidentity"
	"muster.dev/muster/internal/plane/issuer"
)

// Issuing is what is known of a cluster's issuer: its name, and what it publishes at a moment. It is safe for use by
// many at once.
type Issuing struct {
	Issuer issuer.Issuer

	// ring is what is known of the issuer's keys.
	ring func() (Ring, error)

	mu        sync.Mutex
	published []string // the ids of the keys that the rest was made from
	documents issuer.Documents
	keys      webidentity.Keys
}

// NewIssuing reads the URL of an issuer, whose keys are asked for whenever they are needed.
func NewIssuing(url string, ring func() (Ring, error)) (*Issuing, error) {
	own, err := issuer.Parse(url)
	if err != nil {
		return nil, err
	}
	return &Issuing{Issuer: own, ring: ring}, nil
}

// At is what the issuer publishes at a moment, as documents and as keys that verify tokens.
func (i *Issuing) At(now time.Time) (issuer.Documents, webidentity.Keys, error) {
	ring, err := i.ring()
	if err != nil {
		return issuer.Documents{}, webidentity.Keys{}, err
	}
	var ids []string
	for _, k := range ring.Published(now) {
		ids = append(ids, k.ID)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if slices.Equal(ids, i.published) {
		return i.documents, i.keys, nil
	}
	documents, err := Documents(i.Issuer, ring, now)
	if err != nil {
		return issuer.Documents{}, webidentity.Keys{}, err
	}
	keys, err := webidentity.ParseKeys(documents.Keys)
	if err != nil {
		return issuer.Documents{}, webidentity.Keys{}, err
	}
	i.published, i.documents, i.keys = ids, documents, keys
	return documents, keys, nil
}
