// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"muster.dev/muster/internal/platform/atomicfile"
)

// Write writes a kubeconfig with one context. Certificate and key are in it, so that it can be copied.
func Write(path, name, server, authority, credential string) error {
	ca, err := os.ReadFile(authority)
	if err != nil {
		return fmt.Errorf("reading authority for kubeconfig %s: %w", name, err)
	}
	pair, err := os.ReadFile(credential)
	if err != nil {
		return fmt.Errorf("reading credential for kubeconfig %s: %w", name, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: pair, ClientKeyData: pair}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("rendering kubeconfig %s: %w", name, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making directory for kubeconfig %s: %w", name, err)
	}
	return atomicfile.Write(path, raw, 0o600)
}
