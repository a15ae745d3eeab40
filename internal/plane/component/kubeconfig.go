// SPDX-License-Identifier: Apache-2.0

package component

import (
	"io/fs"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// modePrivate is the mode of every file that muster writes for itself.
const modePrivate fs.FileMode = 0o600

// kubeconfig points at the files of the authority and the credential, so that clients see a renewal without a restart
// (client-go reloads both) and the file itself holds no secret.
func kubeconfig(path, server, authority, credential string) (File, error) {
	const name = "muster"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthority: authority}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificate: credential, ClientKey: credential}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return File{}, err
	}
	return File{Path: path, Mode: modePrivate, Content: string(raw)}, nil
}
