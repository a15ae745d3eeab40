// SPDX-License-Identifier: Apache-2.0

package planeclient

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/kubeconfig"
	"muster.dev/muster/internal/platform/statedir"
)

// managementContext is the name of the context of the management plane.
const managementContext = "muster-management"

// WriteKubeconfig writes the administrator's way into a cluster.
func WriteKubeconfig(c component.Config) error {
	return kubeconfig.Write(c.Dir.Kubeconfig(), c.Cluster.Spec.Name, c.Places.Published.URL(), c.Authority(authority.Cluster), c.Credential("administrator"))
}

// WriteManagementKubeconfig writes the administrator's way into the management plane.
func WriteManagementKubeconfig(a component.Account) error {
	return kubeconfig.Write(a.State.ManagementKubeconfig(), managementContext, a.Places.Management.URL(), a.Authority(authority.Management), a.Credential("management-administrator"))
}

// NewAdministrator makes a client of the management plane, as its administrator.
func NewAdministrator(dir statedir.Dir) (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", dir.ManagementKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	config.QPS = -1
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme, Mapper: Mapper()})
}
