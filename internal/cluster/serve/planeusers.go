// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"strings"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeid"
)

// ensureUsers chooses the users of the cluster's components. Where that cannot be, as on a full disk, they run as this
// one until the cluster is served again.
func (h *hosted) ensureUsers() {
	note := h.service.usersNote
	if note == "" {
		if err := planeid.Ensure(h.service.cfg.State, h.dir); err != nil {
			note = strings.ReplaceAll(err.Error(), "\n", "; ")
			h.log.Warn("the control plane has no users of its own", "error", err)
		}
	}
	h.mu.Lock()
	h.usersNote = note
	h.mu.Unlock()
}

// ownUsers reports whether components of the cluster get users of their own when they start.
func (h *hosted) ownUsers() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.usersNote == ""
}

// isAuthenticator reports whether a user of the host is that of a cluster's authenticator.
func (s *Service) isAuthenticator(user uint32) bool {
	return planeid.Is(s.cfg.State, user, component.Authenticator)
}
