// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
)

// hostNameInterval is how often this host's resolver is asked where the name of issuers leads.
const hostNameInterval = time.Minute

// watchHostName keeps a note of whether programs of this host find the issuers by the name in their URLs, until the
// context ends. The name was this host's own; it may have got another since, or /etc/hosts may have changed.
func (s *Service) watchHostName(ctx context.Context, at component.Issuers) {
	for {
		found, err := issuer.Resolve(ctx, at.Host)
		if ctx.Err() != nil {
			return
		}
		note := issuer.Strayed(at, found, err)
		s.mu.Lock()
		changed := s.issuerNote != note
		s.issuerNote = note
		s.mu.Unlock()
		if changed && note != "" {
			s.cfg.Log.Warn("programs of this host do not find service account issuers", "note", note)
		}
		if pause(ctx, hostNameInterval) != nil {
			return
		}
	}
}

// issuerNote is what an operator should know about who finds the issuer of a cluster with pods.
func (h *hosted) issuerNote(specs component.Config, groups []servicestatus.NodeGroup) string {
	if !slices.ContainsFunc(groups, func(g servicestatus.NodeGroup) bool { return g.Provider.Can(v1alpha1.RunPods) }) {
		return ""
	}
	if issuer.IsAddress(specs.Issuers.Host) {
		return fmt.Sprintf("pods cannot reach the issuer of service account tokens, %s. %s", specs.Issuer.URL, issuer.WithoutName)
	}
	h.service.mu.Lock()
	defer h.service.mu.Unlock()
	return h.service.issuerNote
}
