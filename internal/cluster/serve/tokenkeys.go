// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"crypto/ecdsa"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/keyutil"

	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/iam/webidentity"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/tokenkeys"
)

// issuing is what the service knows of a cluster's issuer: its name, and what it publishes at a moment. It is safe for use by many at once.
type issuing struct {
	issuer issuer.Issuer
	source *tokenkeys.Source

	mu        sync.Mutex
	published []string // the ids of the keys that the rest was made from
	documents issuer.Documents
	keys      webidentity.Keys
}

func newIssuing(c component.Config) (*issuing, error) {
	own, err := issuer.Parse(c.Issuer.URL)
	if err != nil {
		return nil, err
	}
	i := &issuing{issuer: own, source: tokenkeys.NewSource(c.TokenKeys())}
	_, _, err = i.at(time.Now())
	return i, err
}

// at is what the issuer publishes at a moment, as documents and as keys that verify tokens.
func (i *issuing) at(now time.Time) (issuer.Documents, webidentity.Keys, error) {
	ring, err := i.source.Ring()
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
	documents, err := tokenkeys.Documents(i.issuer, ring, now)
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

// ensureTokenKeys makes the keys of a new cluster's service account tokens. A cluster of before there was the file goes on with the one key that it
// had; in any other, keys that are lost are not made anew: every token that they signed would be worthless.
func (h *hosted) ensureTokenKeys(c component.Config, now time.Time) error {
	h.tokenKeys.Lock()
	defer h.tokenKeys.Unlock()
	path, marker := c.TokenKeys(), h.dir.Component(component.TokenSigner)
	_, missing := os.Stat(path)
	_, marked := os.Stat(marker)
	switch {
	case missing == nil:
		return markTokenKeys(marker)
	case !errors.Is(missing, fs.ErrNotExist):
		return fmt.Errorf("reading the keys of service account tokens: %w", missing)
	case marked == nil:
		return fmt.Errorf("reading the keys of service account tokens: %s is missing, and the cluster is in use: restore the file from a backup, or remove everything with `muster down --delete`", path)
	}
	ring, err := firstTokenKeys(c, now)
	if err != nil {
		return err
	}
	if err := tokenkeys.Write(path, ring); err != nil {
		return err
	}
	return markTokenKeys(marker)
}

// markTokenKeys notes that the file is there from now on.
func markTokenKeys(marker string) error {
	if err := os.MkdirAll(marker, 0o700); err != nil {
		return fmt.Errorf("making the directory of the token signer: %w", err)
	}
	return nil
}

func firstTokenKeys(c component.Config, now time.Time) (tokenkeys.Ring, error) {
	if _, err := os.Stat(filepath.Join(c.Dir.Etcd(), "member")); errors.Is(err, fs.ErrNotExist) {
		return tokenkeys.New(now, tokenkeys.RS256, rand.Reader)
	}
	parsed, err := keyutil.PrivateKeyFromFile(c.SigningKey())
	if err != nil {
		return tokenkeys.Ring{}, fmt.Errorf("reading the key of service account tokens: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return tokenkeys.Ring{}, fmt.Errorf("reading the key of service account tokens: %s is of type %T and must be an EC key", c.SigningKey(), parsed)
	}
	return tokenkeys.Of(now, key)
}

// pruneTokenKeys takes out of the file what is not needed any more.
func (h *hosted) pruneTokenKeys(c component.Config, now time.Time) error {
	h.tokenKeys.Lock()
	defer h.tokenKeys.Unlock()
	ring, err := tokenkeys.Read(c.TokenKeys())
	if err != nil {
		return err
	}
	pruned, changed := ring.Prune(now)
	if !changed {
		return nil
	}
	h.log.Info("removed what is not needed any more of the keys of service account tokens", "keys", len(pruned.Keys()))
	return tokenkeys.Write(c.TokenKeys(), pruned)
}

// rotateTokenKeys adds a key of service account tokens that signs after a notice, unless one that does not sign yet is published already.
func (h *hosted) rotateTokenKeys(notice time.Duration, now time.Time) ([]servicestatus.TokenKey, error) {
	h.mu.Lock()
	c, ready := h.specs, h.issuing != nil
	h.mu.Unlock()
	if !ready {
		return nil, errors.New("the cluster is being started: try again in a moment")
	}
	h.tokenKeys.Lock()
	defer h.tokenKeys.Unlock()
	ring, err := tokenkeys.Read(c.TokenKeys())
	if err != nil {
		return nil, err
	}
	next, err := ring.Rotate(now, notice, rand.Reader)
	switch {
	case errors.Is(err, tokenkeys.ErrUnderWay):
		return servicestatus.TokenKeys(c.TokenKeys(), now), nil
	case err != nil:
		return nil, err
	}
	if err := tokenkeys.Write(c.TokenKeys(), next); err != nil {
		return nil, err
	}
	keys := next.Keys()
	added := keys[len(keys)-1]
	h.log.Info("published another key of service account tokens", "key", added.ID, "signs", added.Signs)
	return servicestatus.TokenKeys(c.TokenKeys(), now), nil
}
