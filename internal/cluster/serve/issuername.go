// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
)

// WithoutIssuerName says what works where pods cannot reach the issuer, and how another account gets an issuer that they reach. The URL is in every token and in
// whatever trusts it, so that it stays as it is.
const WithoutIssuerName = "STS, IAM roles for service accounts and the API server know its keys all the same; a program in a pod that verifies tokens itself reads the keys at " +
	"https://kubernetes.default.svc/openid/v1/jwks. Issuers of another account can have a name that pods reach: `muster --state-dir OTHER up --issuer-host NAME`"

// hostNameInterval is how often this host's resolver is asked where the name of issuers leads.
const hostNameInterval = time.Minute

// hostName is this host's own name for issuers, and where it leads; an error says why it does not do.
func (s Session) hostName(ctx context.Context) (string, netip.Addr, error) {
	if s.thisHost != nil {
		return s.thisHost(ctx)
	}
	return issuer.ThisHost(ctx)
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// watchHostName keeps a note of whether programs of this host find the issuers by the name in their URLs, until the context ends. The name
// was this host's own; it may have got another since, or /etc/hosts may have changed.
func (s *Service) watchHostName(ctx context.Context, at component.Issuers) {
	for {
		found, err := issuer.Resolve(ctx, at.Host)
		if ctx.Err() != nil {
			return
		}
		note := strayed(at, found, err)
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

// strayed says that a name of issuers leads elsewhere on this host; nothing if it does not.
func strayed(at component.Issuers, found []netip.Addr, err error) string {
	leads := fmt.Sprintf("leads to %v", found)
	switch {
	case err != nil:
		leads = fmt.Sprintf("is not found (%v)", err)
	case slices.Contains(found, at.Loopback):
		return ""
	}
	return fmt.Sprintf("programs of this host do not find issuers of service account tokens any more, pods do: %s %s here; put the line `%s %s` into /etc/hosts",
		at.Host, leads, at.Loopback, at.Host)
}

// issuerNote is what an operator should know about who finds the issuer of a cluster with pods.
func (h *hosted) issuerNote(specs component.Config, groups []NodeGroupStatus) string {
	if !slices.ContainsFunc(groups, func(g NodeGroupStatus) bool { return g.Provider == v1alpha1.ProviderLocal }) {
		return ""
	}
	if isAddress(specs.Issuers.Host) {
		return fmt.Sprintf("pods cannot reach the issuer of service account tokens, %s. %s", specs.Issuer.URL, WithoutIssuerName)
	}
	h.service.mu.Lock()
	defer h.service.mu.Unlock()
	return h.service.issuerNote
}
