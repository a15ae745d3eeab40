// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"time"

	"muster.dev/muster/internal/cluster/servicestatus"
)

// rotateTokenKeys has the cluster's token signer publish another key, which signs after a notice.
func (h *hosted) rotateTokenKeys(notice time.Duration) ([]servicestatus.TokenKey, error) {
	h.mu.Lock()
	signer := h.accounts.Signer
	h.mu.Unlock()
	if signer == nil {
		return nil, errors.New("the cluster is being started: try again in a moment")
	}
	ring, err := signer.Rotate(h.ctx, notice)
	if err != nil {
		return nil, err
	}
	return servicestatus.TokenKeys(ring, time.Now()), nil
}
