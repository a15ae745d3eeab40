// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/iam/authenticatorconfig"
	"muster.dev/muster/internal/network/clusternetwork"
)

// DefaultAccount is the account that everything is in until somebody makes another.
const DefaultAccount = "000000000000"

// The credentials by which the API server, and the service when it wants to know what the API server would be told, ask
// the authenticator. Their authority is that of the programs that may speak for users: nobody gets a certificate of it
// by a CSR.
const authenticatorClient = "authenticator-client"

// AuthenticatorClient is the file with the certificate and key that its callers have.
func (c Config) AuthenticatorClient() string { return c.Credential(authenticatorClient) }

// authenticator says who the makers of IAM tokens are. The API server may start before it: it is only asked when such a
// token comes, and until then a 401 is all that anybody has to bear.
func authenticator(c Config) (Spec, error) {
	path := c.file(Authenticator, "kubeconfig")
	cluster, err := kubeconfig(path, c.Places.Published.URL(), c.Authority("cluster"), c.Credential("authenticator"))
	if err != nil {
		return Spec{}, err
	}
	raw, err := yaml.Marshal(c.authenticatorFile())
	if err != nil {
		return Spec{}, fmt.Errorf("rendering the authenticator's file: %w", err)
	}
	file := File{Path: c.file(Authenticator, "authenticator.yaml"), Mode: modePrivate, Content: string(raw)}
	return Spec{
		Name:        Authenticator,
		Path:        c.program("muster"),
		Args:        append([]string{"authenticator"}, flags(map[string]string{"config": file.Path, "kubeconfig": path})...),
		Files:       []File{cluster, file},
		Address:     c.Places.Authenticator.Listen.String(),
		Credentials: sorted(c.Credential("authenticator"), c.Credential(CredentialAccountAuthenticator), c.AuthenticatorClient()),
		View: &View{
			Reads:  sorted(c.Credential("authenticator"), c.Credential(CredentialAccountAuthenticator)),
			Public: sorted(c.Authority("cluster"), c.Authority("front-proxy")), Fixed: []string{c.Account.Authority(authority.Account)},
			Connects: []string{c.State.IdentitySocket()},
		},
		Probe: &Probe{URL: c.Places.Authenticator.URL() + "/readyz", CAFile: c.Authority("cluster"), CredentialFile: c.AuthenticatorClient()},
		After: []string{Front, APIServer},
	}, nil
}

// authenticatorFile sets the authenticator of muster's own clusters up: it asks the account who made a token, as this
// cluster's authenticator.
func (c Config) authenticatorFile() authenticatorconfig.Configuration {
	services := clusternetwork.Services(c.Network.VPCCIDR)
	credential := c.Credential("authenticator")
	return authenticatorconfig.Configuration{
		TypeMeta:  metav1.TypeMeta{APIVersion: authenticatorconfig.APIVersion, Kind: authenticatorconfig.Kind},
		ClusterID: c.Cluster.Spec.Name,
		AccountID: DefaultAccount,
		Server: authenticatorconfig.Server{
			BindAddress: c.Places.Authenticator.Listen.String(), HealthAddress: authenticatorconfig.None,
			Certificate: credential, Key: credential, ClientCA: c.Authority("front-proxy"),
		},
		Backend: authenticatorconfig.BackendMuster,
		// A token that was verified before the service went away stays good for a while: through an outage of a minute,
		// and until it was started anew.
		Muster: &authenticatorconfig.Muster{
			Socket: c.State.IdentitySocket(), CA: c.Account.Authority(authority.Account), Credential: c.Credential(CredentialAccountAuthenticator), StaleAfter: "3m",
		},
		STS: authenticatorconfig.STS{
			Regions: []string{c.Region.Name},
			// Programs that are told an endpoint sign for it instead of AWS's own host.
			Hosts: []string{
				fmt.Sprintf("%s=%s", c.Account.Places.Identity.URL(), c.Region.Name),
				fmt.Sprintf("https://localhost:%d=%s", c.Account.Places.Identity.Reach.Port(), c.Region.Name),
				fmt.Sprintf("https://%s=%s", services, c.Region.Name),
			},
		},
		Mapping:        authenticatorconfig.Mapping{Mode: string(c.Cluster.Spec.AccessConfig.AuthenticationMode), Namespace: policyconfig.HostsNamespace},
		AccessPolicies: authenticatorconfig.AccessPolicies{Alone: true, Enabled: c.Cluster.Spec.AccessConfig.AuthenticationMode != v1alpha1.AuthenticationConfigMap}, // it has no entries
	}
}
