// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"strconv"
	"strings"
)

var (
	healthPaths           = []string{"/livez", "/readyz", "/healthz"}
	clusterAnonymousPaths = append(healthPaths, "/api/v1/namespaces/kube-public/configmaps/cluster-info")
)

// authentication lets strangers in on the given paths only. Everywhere else a request without credentials is a 401, so
// a careless RBAC rule for system:anonymous opens nothing (KEP-4633).
func authentication(paths []string) string {
	var b strings.Builder
	b.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous:\n  enabled: true\n  conditions:\n")
	for _, path := range paths {
		fmt.Fprintf(&b, "  - path: %s\n", path)
	}
	return b.String()
}

// encryption keeps Secrets sealed in etcd. identity comes last so that objects from before would still be read.
func encryption(key string) string {
	return `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - secretbox:
      keys:
      - name: key1
        secret: ` + key + `
  - identity: {}
`
}

// egressSelections are the unix sockets of HTTP CONNECT proxies, by upstream's names of the networks that they lead to.
type egressSelections struct {
	// ControlPlane is of webhooks: those that the API server's flags name, and those that users name by URL. Upstream
	// tells them apart no further.
	ControlPlane string
	// Cluster is of kubelets, pods and Services: webhooks and aggregated APIs that are Services, too.
	Cluster string
}

// selections are the ways of a cluster. Users have an API server dial what they like: webhooks, conversions, aggregated
// APIs. The API server dials none of these from the host's own network. Kubelets and pods live in the VPC, where the host
// has no address.
func selections(c Config) egressSelections {
	s := egressSelections{ControlPlane: c.State.ControlPlaneSocket(c.Dir.Namespace()), Cluster: c.State.EgressSocket(c.Dir.Namespace())}
	if !c.VPC {
		s.Cluster = s.ControlPlane // where nothing but the account's own ports is reached
	}
	return s
}

// egress has the API server dial nothing by itself but etcd, which is on this host. A network that is not named would
// be dialled directly.
func egress(s egressSelections) string {
	var b strings.Builder
	b.WriteString("apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n")
	for _, selection := range []struct{ name, socket string }{{"cluster", s.Cluster}, {"controlplane", s.ControlPlane}} {
		fmt.Fprintf(&b, `- name: %s
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %s
`, selection.name, strconv.Quote(selection.socket))
	}
	return b.String()
}
