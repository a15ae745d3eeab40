// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/kubeconfig"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/watchretry"
)

// managementContext is the name of the context of the management plane.
const managementContext = "muster-management"

// writeKubeconfig writes the administrator's way into a cluster.
func writeKubeconfig(c component.Config) error {
	return kubeconfig.Write(c.Dir.Kubeconfig(), c.Cluster.Spec.Name, c.ServerURL(), c.Authority(authority.Cluster), c.Credential("administrator"))
}

// writeManagementKubeconfig writes the administrator's way into the management plane.
func writeManagementKubeconfig(a component.Account) error {
	return kubeconfig.Write(a.State.ManagementKubeconfig(), managementContext, a.ManagementURL(), a.Authority(authority.Management), a.Credential("management-administrator"))
}

// clusterREST is the service's own way into a cluster.
func clusterREST(c component.Config) *rest.Config {
	return serviceREST(c.ServerURL(), c.Authority(authority.Cluster), c.Credential("service"))
}

// managementREST is the service's own way into the management plane. Reads from memory have what was written by it.
func (s *Service) managementREST(a component.Account) *rest.Config {
	config := serviceREST(a.ManagementURL(), a.Authority(authority.Management), a.Credential("management-service"))
	s.writes.Wrap(config)
	return config
}

// serviceREST reads the files of its credential again when they change.
func serviceREST(server, authority, credential string) *rest.Config {
	config := &rest.Config{
		Host:            server,
		TLSClientConfig: rest.TLSClientConfig{CAFile: authority, CertFile: credential, KeyFile: credential},
		UserAgent:       "muster-service",
		QPS:             -1, // the API servers have priority and fairness; limiting twice only makes joins slow
	}
	watchretry.Wrap(config)
	return config
}

// managementConfig is a client configuration for the management plane, as its administrator.
func managementConfig(dir statedir.Dir) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", dir.ManagementKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	config.QPS = -1
	return config, nil
}
