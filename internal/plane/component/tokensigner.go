// SPDX-License-Identifier: Apache-2.0

package component

import (
	"path/filepath"
	"time"
)

// TokenLifetime is how long a service account token may be good: as on EKS.
const TokenLifetime = 24 * time.Hour

// TokenKeys is the file with the keys of the cluster's service account tokens (package tokenkeys), which the service makes and rotates.
func (c Config) TokenKeys() string {
	return filepath.Join(c.Dir.PKI(), "service-account", "keys.json")
}

// tokenSigner signs service account tokens for the API server. Keys are replaced under it: its file is read again.
func tokenSigner(c Config) (Spec, error) {
	socket := c.State.TokenSocket(c.Dir.Namespace())
	return Spec{
		Name: TokenSigner,
		Path: c.program("muster-token-signer"),
		Args: flags(map[string]string{
			"issuer":     c.Issuer.URL,
			"keys":       c.TokenKeys(),
			"legacy-key": c.SigningKey(),
			"socket":     socket,
		}),
		Directories: []string{c.State.Run()},
		Credentials: sorted(c.SigningKey(), c.TokenKeys()),
		View:        &View{Reads: sorted(c.SigningKey(), c.TokenKeys()), Listens: []string{socket}},
		Probe:       &Probe{URL: "http://token-signer/readyz", Socket: socket},
	}, nil
}
