// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"slices"
	"strings"
)

// contents are the names of all that Muster keeps in a state directory, and of what earlier versions kept there.
var contents = []string{
	"account.json", "audit", "clusters", "components", "etcd", "filesystems", "host-root.json", "iam", "ids.json", "images", "issuers.json", "kubeconfig", "layout",
	"loadbalancers.json", "lock", "log-store", "logs", "machines", "management-etcd", "management-plane.json", "muster.yaml", "pki", "ports.json", "proxy.json", "queues",
	"registries.yaml", "registry", "reserve", "run", "saved", "vpc", "written.json",
}

// Owns reports whether what has a name in a state directory is Muster's: one of its names, or a file that a crash kept
// from having its name (package atomicfile).
func Owns(name string) bool {
	return slices.Contains(contents, name) || strings.HasPrefix(name, ".new-")
}
