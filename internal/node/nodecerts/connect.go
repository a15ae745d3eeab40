// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfigs are where kubelets keep their kubeconfig: on muster's and EKS's nodes, and on kubeadm's.
func Kubeconfigs() []string {
	return []string{"/var/lib/kubelet/kubeconfig", "/etc/kubernetes/kubelet.conf"}
}

// FindKubeconfig is the first of the usual ones that exists.
func FindKubeconfig() (string, error) {
	for _, path := range Kubeconfigs() {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("looking for the kubelet's kubeconfig: %w", err)
		}
	}
	return "", fmt.Errorf("no kubelet's kubeconfig at %s: this machine has not joined a cluster, or --kubeconfig must say where it is", strings.Join(Kubeconfigs(), " or "))
}

// Endpoint is the API server and its authorities as a kubeconfig has them, without a credential.
func Endpoint(path string) (*rest.Config, error) {
	file, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the kubelet's kubeconfig: %w", err)
	}
	for name := range file.AuthInfos { // the file that it names may be missing, and is not used
		file.AuthInfos[name] = clientcmdapi.NewAuthInfo()
	}
	return configOf(path, file)
}

// configOf is what a kubeconfig says, if it verifies the API server.
func configOf(path string, file *clientcmdapi.Config) (*rest.Config, error) {
	config, err := clientcmd.NewDefaultClientConfig(*file, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubelet's kubeconfig %s: %w", path, err)
	}
	if config.Insecure {
		return nil, fmt.Errorf("kubeconfig %s does not verify the API server: a certificate that it hands out is worth nothing", path)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading whom to trust: %w", err)
	}
	config.UserAgent, config.Timeout = "muster-node", 10*time.Second
	config.QPS = -1 // one caller that asks slowly needs no limit
	return config, nil
}

// Connection is an endpoint with the node's own credential: the certificate on the disk, which the kubeconfig names as
// well, or tokens of its machine's role.
func Connection(ctx context.Context, kubeconfig, dir string, now time.Time) (config *rest.Config, node string, err error) {
	if ByRole(kubeconfig) {
		return roleConnection(ctx, kubeconfig)
	}
	report := read(dir, Client, now)
	for _, p := range report.Problems {
		switch p.Trouble {
		case Missing, Unreadable, KeyMismatch, Expired, NotYetValid:
			return nil, "", fmt.Errorf("the node's client certificate cannot be used: %s", p)
		default: // it can still be used
		}
	}
	node, ok := strings.CutPrefix(report.CommonName, userPrefix)
	if !ok || node == "" {
		return nil, "", fmt.Errorf("the client certificate in %s is for %q, which is not a node", dir, report.CommonName)
	}
	if config, err = Endpoint(kubeconfig); err != nil {
		return nil, "", err
	}
	// Both from one reading: the kubelet may replace it at any moment.
	pair, _, err := readFile(filepath.Join(dir, Client.link()))
	if err != nil {
		return nil, "", err
	}
	config.CertData, config.KeyData = pair, pair
	return config, node, nil
}
