// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"time"

	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/tokenkeys"
)

// rotateTokenKeys adds a key of service account tokens that signs after a notice, unless one that does not sign yet is published already.
func (h *hosted) rotateTokenKeys(notice time.Duration, now time.Time) ([]servicestatus.TokenKey, error) {
	h.mu.Lock()
	c, ready := h.specs, h.issuing != nil
	h.mu.Unlock()
	if !ready {
		return nil, errors.New("the cluster is being started: try again in a moment")
	}
	ring, err := h.tokenKeys.Rotate(c, notice, now)
	switch {
	case errors.Is(err, tokenkeys.ErrUnderWay):
	case err != nil:
		return nil, err
	default:
		keys := ring.Keys()
		added := keys[len(keys)-1]
		h.log.Info("published another key of service account tokens", "key", added.ID, "signs", added.Signs)
	}
	return servicestatus.TokenKeysOf(ring, now), nil
}
