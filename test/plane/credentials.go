// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"muster.dev/muster/internal/certificates/authority"
)

func components() []authority.Credential {
	local, names := []netip.Addr{netip.MustParseAddr("127.0.0.1")}, []string{"localhost"}
	return []authority.Credential{
		{Name: "etcd", Authority: authority.Etcd, CommonName: "etcd", DNSNames: names, Addresses: local, Client: true},
		{Name: "etcd-client", Authority: authority.Etcd, CommonName: "kube-apiserver", Client: true},
		{Name: "kube-apiserver", Authority: authority.Cluster, CommonName: "kube-apiserver", DNSNames: append(names, "kubernetes"), Addresses: local},
	}
}

// CA is the file with the certificate of the cluster's one authority.
func (p *Plane) CA() string { return p.store.AuthorityPath(authority.Cluster) }

// CAKey is the file with its key.
func (p *Plane) CAKey() string { return filepath.Join(filepath.Dir(p.CA()), "ca-key.pem") }

func (p *Plane) signingKey() string {
	return filepath.Join(p.dir, "pki", "service-account", "cluster.pem")
}

// Credential makes a client certificate and returns the file with it and its key.
func (p *Plane) Credential(user string, groups ...string) (string, error) {
	name := fileName(user, groups)
	err := p.credentials(authority.Credential{Name: name, Authority: authority.Cluster, CommonName: user, Organizations: groups, Client: true})
	return p.store.Path(name), err
}

// credentials adds to those that were issued.
func (p *Plane) credentials(more ...authority.Credential) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range more {
		if !slices.ContainsFunc(p.issued, func(other authority.Credential) bool { return other.Name == c.Name }) {
			p.issued = append(p.issued, c)
		}
	}
	_, err := p.store.Ensure(p.issued, time.Now())
	return err
}

// Kubeconfig writes one for a user in these groups and returns its path.
func (p *Plane) Kubeconfig(user string, groups ...string) (string, error) {
	credential, err := p.Credential(user, groups...)
	if err != nil {
		return "", err
	}
	return p.writeKubeconfig(fileName(user, groups), &clientcmdapi.AuthInfo{ClientCertificate: credential, ClientKey: credential})
}

// ServiceAccountKubeconfig writes one for a service account, with a token as its pods get one, and returns its path.
func (p *Plane) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	token, err := p.admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("making a token of %s/%s: %w", namespace, name, err)
	}
	return p.writeKubeconfig(namespace+"-"+name, &clientcmdapi.AuthInfo{Token: token.Status.Token})
}

func (p *Plane) writeKubeconfig(file string, who *clientcmdapi.AuthInfo) (string, error) {
	const name = "plane"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: p.server, CertificateAuthority: p.CA()}
	config.AuthInfos[name] = who
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	path := filepath.Join(p.dir, file+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("writing kubeconfig %s: %w", file, err)
	}
	return path, nil
}

// fileName is readable, and different for different users.
func fileName(user string, groups []string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{user}, groups...), "\x00")))
	readable := strings.Map(func(r rune) rune {
		if r == ':' || r == '/' {
			return '-'
		}
		return r
	}, user)
	return readable + "-" + hex.EncodeToString(sum[:4])
}
