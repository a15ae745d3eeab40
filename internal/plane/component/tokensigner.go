// SPDX-License-Identifier: Apache-2.0

package component

import (
	"path/filepath"
	"time"

	"muster.dev/muster/internal/certificates/authority"
)

// TokenLifetime is how long a service account token may be good: as on EKS.
const TokenLifetime = 24 * time.Hour

// TokenKeysBefore is the file in which the service kept the keys of service account tokens before the cluster's signer
// did.
func (c Config) TokenKeysBefore() string {
	return filepath.Join(c.Dir.PKI(), "service-account", "keys.json")
}

// tokenSigner signs service account tokens for the API server, with keys that it alone has. The account alone is
// answered by TLS.
func tokenSigner(c Config) (Spec, error) {
	socket, credential := c.State.TokenSocket(c.Dir.Namespace()), c.Credential(TokenSigner)
	return Spec{
		Name: TokenSigner,
		Path: c.program("muster-token-signer"),
		Args: flags(map[string]string{
			"address":    c.Places.TokenSigner.Listen.String(),
			"client":     UserAccount,
			"client-ca":  c.Authority(authority.FrontProxy),
			"credential": credential,
			"issuer":     c.Issuer.URL,
			"keys":       c.Dir.TokenSigner(),
			"legacy-key": c.SigningKey(),
			"socket":     socket,
		}),
		Directories: []string{c.State.Run()},
		Address:     c.Places.TokenSigner.Listen.String(),
		Credentials: sorted(c.SigningKey(), credential),
		View: &View{
			Reads: sorted(c.SigningKey(), credential), Public: []string{c.Authority(authority.FrontProxy)}, Writes: []string{c.Dir.TokenSigner()},
			Listens: []string{socket},
		},
		Probe: &Probe{URL: "http://token-signer/readyz", Socket: socket},
	}, nil
}
