// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"maps"

	"muster.dev/muster/internal/platform/release"
)

// management is the API server that holds muster's own kinds, and none of a cluster's: upstream's generic control
// plane, which has custom resources, RBAC, Secrets and events, but no nodes and pods. Nodes have no way to it.
func management(a Account) Spec {
	credential := a.Credential("management-apiserver")
	args := map[string]string{
		// Nobody looks it up; without it the server wants the host to have a default route, which a laptop offline has
		// not.
		"advertise-address":                a.Places.Management.Reach.Addr().String(),
		"authentication-config":            a.managementFile("authentication.yaml"),
		"authorization-mode":               "RBAC",
		"bind-address":                     a.Places.Management.Listen.Addr().String(),
		"client-ca-file":                   a.Authority("management"),
		"encryption-provider-config":       a.managementFile("encryption.yaml"),
		"profiling":                        "false",
		"secure-port":                      fmt.Sprint(a.Places.Management.Listen.Port()),
		"service-account-issuer":           a.Places.Management.URL(),
		"service-account-key-file":         a.SigningKey(),
		"service-account-signing-key-file": a.SigningKey(),
		"tls-cert-file":                    credential,
		"tls-min-version":                  "VersionTLS12",
		"tls-private-key-file":             credential,
	}
	maps.Copy(args, etcdFlags("/management", []string{a.Places.ManagementEtcd.URL()}, a.Authority(ManagementEtcd), a.Credential(clientOf(ManagementEtcd))))
	return Spec{
		Name: Management,
		Path: release.Default().Program(a.BinDir, "generic-apiserver"),
		Args: flags(args),
		Files: []File{
			{Path: a.managementFile("authentication.yaml"), Mode: modePrivate, Content: authentication(healthPaths)},
			{Path: a.managementFile("encryption.yaml"), Mode: modePrivate, Content: encryption(a.EncryptionKey), Secret: true},
		},
		Address:     a.Places.Management.Listen.String(),
		Credentials: sorted(credential, a.Credential(clientOf(ManagementEtcd)), a.SigningKey()),
		Probe:       &Probe{URL: a.Places.Management.URL() + "/readyz", CAFile: a.Authority("management")},
		After:       []string{ManagementEtcd},
	}
}
