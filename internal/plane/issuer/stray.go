// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"fmt"
	"net/netip"
	"slices"

	"muster.dev/muster/internal/plane/component"
)

// WithoutName says what works where pods cannot reach the issuer, and how another account gets an issuer that they
// reach. The URL is in every token and in whatever trusts it, so that it stays as it is.
const WithoutName = "STS, IAM roles for service accounts and the API server know its keys all the same; a program in a pod that verifies tokens itself reads the keys at " +
	"https://kubernetes.default.svc/openid/v1/jwks. Issuers of another account can have a name that pods reach: `muster --state-dir OTHER up --issuer-host NAME`"

// IsAddress reports whether the host of issuers is an address, which pods cannot reach.
func IsAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// Strayed says that the name of issuers leads elsewhere on this host, to the addresses that were found; nothing if it
// does not.
func Strayed(at component.Issuers, found []netip.Addr, err error) string {
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
