// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/tokenkeys"
)

// NewOIDCCommand returns "muster oidc".
func NewOIDCCommand(o *terminal.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "oidc",
		Short: "Print what a cluster's issuer of service account tokens publishes",
		Long: `Print the two documents by which anybody verifies a cluster's service account tokens, such as for a bucket or a proxy under the
host name that "muster up --issuer-host" was given. There is no secret in them.`,
	}
	for _, document := range []struct {
		name, short, path string
		of                func(issuer.Documents) []byte
	}{
		{"discovery", "Print the discovery document", "/.well-known/openid-configuration", func(d issuer.Documents) []byte { return d.Discovery }},
		{"jwks", "Print the public keys, as a JSON Web Key Set", "/keys", func(d issuer.Documents) []byte { return d.Keys }},
	} {
		cmd.AddCommand(&cobra.Command{
			Use:     document.name,
			Short:   document.short,
			Long:    document.short + ", which belongs at the issuer's URL and " + document.path + ".",
			Example: "  muster oidc " + document.name + "\n  muster oidc " + document.name + " --cluster blue > " + document.name + ".json",
			Args:    cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				documents, err := issuerDocuments(o)
				if err != nil {
					return err
				}
				_, err = o.Out.Write(append(document.of(documents), '\n'))
				return err
			},
		})
	}
	return cmd
}

func issuerDocuments(o *terminal.Options) (issuer.Documents, error) {
	dir, err := o.OpenCluster()
	if err != nil {
		return issuer.Documents{}, err
	}
	own, err := issuer.Read(dir.Issuer())
	if err != nil {
		return issuer.Documents{}, err
	}
	keys, err := tokenkeys.ReadPublic(dir.TokenKeys())
	if err != nil {
		return issuer.Documents{}, err
	}
	return tokenkeys.Documents(own, keys, time.Now())
}
