// SPDX-License-Identifier: Apache-2.0

package httpserve

import (
	"net/http"
)

// Only lets requests through of clients whose certificate, which was verified, has a common name and no organization.
// All others are forbidden.
func Only(commonName string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			http.Error(w, "show a client certificate", http.StatusForbidden)
			return
		}
		if subject := r.TLS.PeerCertificates[0].Subject; commonName == "" || subject.CommonName != commonName || len(subject.Organization) > 0 {
			http.Error(w, "this is not answered to "+subject.String(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
