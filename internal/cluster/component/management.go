// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"maps"
)

// management is the API server that holds muster's own kinds, and none of a cluster's: upstream's generic control plane,
// which has custom resources, RBAC, Secrets and events, but no nodes and pods. Nodes have no way to it.
func management(c Config) (Spec, error) {
	credential := c.Credential("management-apiserver")
	args := map[string]string{
		// Nobody looks it up; without it the server wants the host to have a default route, which a laptop offline has not.
		"advertise-address":                Loopback,
		"authentication-config":            c.file(Management, "authentication.yaml"),
		"authorization-mode":               "RBAC",
		"bind-address":                     Loopback,
		"client-ca-file":                   c.Authority("management"),
		"encryption-provider-config":       c.file(Management, "encryption.yaml"),
		"profiling":                        "false",
		"secure-port":                      fmt.Sprint(c.Ports.Management),
		"service-account-issuer":           c.ManagementURL(),
		"service-account-key-file":         c.SigningKey("management"),
		"service-account-signing-key-file": c.SigningKey("management"),
		"tls-cert-file":                    credential,
		"tls-min-version":                  "VersionTLS12",
		"tls-private-key-file":             credential,
	}
	maps.Copy(args, c.etcdFlags(ManagementEtcd, "/management", c.Ports.ManagementEtcd))
	return Spec{
		Name: Management,
		Path: c.program("generic-apiserver"),
		Args: flags(args),
		Files: []File{
			{Path: c.file(Management, "authentication.yaml"), Mode: modePrivate, Content: authentication(healthPaths)},
			{Path: c.file(Management, "encryption.yaml"), Mode: modePrivate, Content: encryption(c.EncryptionKey), Secret: true},
		},
		Probe: &Probe{URL: c.ManagementURL() + "/readyz", CAFile: c.Authority("management")},
		After: []string{ManagementEtcd},
	}, nil
}
