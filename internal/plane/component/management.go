// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/platform/release"
)

// ManagementServers is how many API servers of the management plane can run at a time: the one that serves, and another
// that takes its place. Each is in a slot, counted from 0, which gives it a port, a folder and a log of its own.
const ManagementServers = 2

// ManagementName is the name of the management plane's API server in a slot.
func ManagementName(slot int) string { return inSlot(Management, slot) }

func managementNames() []string { return inSlots(Management, ManagementServers) }

// IsManagementPlane reports whether a process is of the management plane, by its name within the account.
func IsManagementPlane(process string) bool {
	return process == ManagementEtcd || process == ManagementFront || slices.Contains(managementNames(), process)
}

// managementServer is the API server in a slot that holds muster's own kinds, and none of a cluster's: upstream's generic
// control plane, which has custom resources, RBAC, Secrets and events, but no nodes and pods. Nodes have no way to it.
func managementServer(a Account, slot int) Spec {
	name, place, credential := ManagementName(slot), a.Places.ManagementServer(slot), a.Credential("management-apiserver")
	args := map[string]string{
		// Nobody looks it up; without it the server wants the host to have a default route, which a laptop offline has
		// not.
		"advertise-address":                a.Places.Management.Reach.Addr().String(),
		"authentication-config":            a.file(name, "authentication.yaml"),
		"authorization-mode":               "RBAC",
		"bind-address":                     place.Listen.Addr().String(),
		"client-ca-file":                   a.Authority("management"),
		"encryption-provider-config":       a.file(name, "encryption.yaml"),
		"profiling":                        "false",
		"secure-port":                      fmt.Sprint(place.Listen.Port()),
		"service-account-issuer":           a.Places.Management.URL(),
		"service-account-key-file":         a.SigningKey(),
		"service-account-signing-key-file": a.SigningKey(),
		"tls-cert-file":                    credential,
		"tls-min-version":                  "VersionTLS12",
		"tls-private-key-file":             credential,
	}
	maps.Copy(args, endFlags())
	maps.Copy(args, etcdFlags("/management", []string{a.Places.ManagementEtcd.URL()}, a.Authority(ManagementEtcd), a.Credential(clientOf(ManagementEtcd))))
	return Spec{
		Name: name,
		Path: release.Default().Program(a.BinDir, "generic-apiserver"),
		Args: flags(args),
		Files: []File{
			{Path: a.file(name, "authentication.yaml"), Mode: modePrivate, Content: authentication(healthPaths)},
			{Path: a.file(name, "encryption.yaml"), Mode: modePrivate, Content: encryption(a.EncryptionKey), Secret: true},
		},
		Address:     place.Listen.String(),
		Credentials: sorted(credential, a.Credential(clientOf(ManagementEtcd)), a.SigningKey()),
		Grace:       metav1.Duration{Duration: serverGrace},
		Probe:       &Probe{URL: place.URL() + "/readyz", CAFile: a.Authority("management")},
		After:       []string{ManagementEtcd},
	}
}
