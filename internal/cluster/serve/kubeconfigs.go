// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/statedir"
)

// writeKubeconfigs writes the administrator's ways in. Certificate and key are in them, so that they can be copied.
func writeKubeconfigs(c component.Config) error {
	for _, k := range []struct{ path, name, server, authority, credential string }{
		{c.State.ClusterKubeconfig(), c.Cluster.Name, c.ServerURL(), "cluster", "administrator"},
		{c.State.ManagementKubeconfig(), c.Cluster.Name + "-management", c.ManagementURL(), "management", "management-administrator"},
	} {
		ca, err := os.ReadFile(c.Authority(k.authority))
		if err != nil {
			return fmt.Errorf("reading authority for kubeconfig %s: %w", k.name, err)
		}
		pair, err := os.ReadFile(c.Credential(k.credential))
		if err != nil {
			return fmt.Errorf("reading credential for kubeconfig %s: %w", k.name, err)
		}
		config := clientcmdapi.NewConfig()
		config.Clusters[k.name] = &clientcmdapi.Cluster{Server: k.server, CertificateAuthorityData: ca}
		config.AuthInfos[k.name] = &clientcmdapi.AuthInfo{ClientCertificateData: pair, ClientKeyData: pair}
		config.Contexts[k.name] = &clientcmdapi.Context{Cluster: k.name, AuthInfo: k.name}
		config.CurrentContext = k.name
		raw, err := clientcmd.Write(*config)
		if err != nil {
			return fmt.Errorf("rendering kubeconfig %s: %w", k.name, err)
		}
		if err := os.MkdirAll(filepath.Dir(k.path), 0o700); err != nil {
			return fmt.Errorf("making directory for kubeconfig %s: %w", k.name, err)
		}
		if err := atomicfile.Write(k.path, raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// serviceClient is the service's own way into a plane. It reads the files of its credential again when they change.
func serviceClient(c component.Config, server, authority, credential string) *rest.Config {
	return &rest.Config{
		Host: server,
		TLSClientConfig: rest.TLSClientConfig{
			CAFile:   c.Authority(authority),
			CertFile: c.Credential(credential),
			KeyFile:  c.Credential(credential),
		},
		UserAgent: "muster-service",
		QPS:       -1, // the API servers have priority and fairness; limiting twice only makes joins slow
	}
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
