// SPDX-License-Identifier: Apache-2.0

package component

import (
	"net/netip"
	"slices"

	"muster.dev/muster/internal/certificates/authority"
)

// The groups that muster's own RBAC rules speak of.
const (
	// GroupAdministrators are the people of the kubeconfig that `muster up` writes.
	GroupAdministrators = "muster:administrators"
	// GroupKubeletClients may do everything on kubelets: the API server, for logs, exec and metrics.
	GroupKubeletClients = "muster:kubelet-clients"
	// UserCertificateController is who approves and signs, by the name that EKS gives it.
	UserCertificateController = "eks:certificate-controller"
	// UserAuthenticator is who reads access entries and keeps the roles of access policies, by the name that EKS gives it.
	UserAuthenticator = "eks:authenticator"
	// UserService is `muster serve`.
	UserService = "muster:service"
)

// groupMasters is let through before RBAC is asked; only the service has it, which must set RBAC up.
const groupMasters = "system:masters"

// CredentialIdentity is the certificate of the identity service. It is the cluster's authority's, which people and workloads trust already.
const CredentialIdentity = "identity-service"

// Credentials are the certificates that the components and administrators of a cluster need.
func Credentials(c Config) ([]authority.Credential, error) {
	names, addresses, err := c.ServerNames()
	if err != nil {
		return nil, err
	}
	services, err := c.Services()
	if err != nil {
		return nil, err
	}
	local := []netip.Addr{netip.MustParseAddr(Loopback)}
	localhost := []string{"localhost"}
	return []authority.Credential{
		{Name: Etcd, Authority: authority.Etcd, CommonName: "etcd", DNSNames: localhost, Addresses: local, Client: true},
		{Name: clientOf(Etcd), Authority: authority.Etcd, CommonName: "kube-apiserver", Client: true},
		{Name: probeOf(Etcd), Authority: authority.Etcd, CommonName: "probe", Client: true},
		{Name: ManagementEtcd, Authority: authority.ManagementEtcd, CommonName: "etcd", DNSNames: localhost, Addresses: local, Client: true},
		{Name: clientOf(ManagementEtcd), Authority: authority.ManagementEtcd, CommonName: "management-apiserver", Client: true},
		{Name: probeOf(ManagementEtcd), Authority: authority.ManagementEtcd, CommonName: "probe", Client: true},

		{Name: "kube-apiserver", Authority: authority.Cluster, CommonName: "kube-apiserver", DNSNames: names, Addresses: addresses},
		{Name: "kubelet-client", Authority: authority.Cluster, CommonName: "kube-apiserver", Organizations: []string{GroupKubeletClients}, Client: true},
		{Name: "front-proxy-client", Authority: authority.FrontProxy, CommonName: "front-proxy-client", Client: true},
		{Name: "kube-controller-manager", Authority: authority.Cluster, CommonName: "system:kube-controller-manager", DNSNames: localhost, Addresses: local, Client: true},
		{Name: "kube-scheduler", Authority: authority.Cluster, CommonName: "system:kube-scheduler", DNSNames: localhost, Addresses: local, Client: true},
		{Name: "certificate-controller", Authority: authority.Cluster, CommonName: UserCertificateController, Client: true},
		{Name: "authenticator", Authority: authority.Cluster, CommonName: UserAuthenticator, DNSNames: localhost, Addresses: local, Client: true},
		{Name: authenticatorClient, Authority: authority.FrontProxy, CommonName: authenticatorClient, Client: true},
		{Name: "service", Authority: authority.Cluster, CommonName: UserService, Organizations: []string{groupMasters}, Client: true},
		{Name: "administrator", Authority: authority.Cluster, CommonName: "muster:administrator", Organizations: []string{GroupAdministrators}, Client: true},
		{Name: CredentialIdentity, Authority: authority.Cluster, CommonName: "muster:identity-service", DNSNames: localhost, Addresses: append(slices.Clone(local), services)},

		{Name: "management-apiserver", Authority: authority.Management, CommonName: "management-apiserver", DNSNames: localhost, Addresses: local},
		{Name: "certificate-controller-inventory", Authority: authority.Management, CommonName: UserCertificateController, Client: true},
		{Name: "management-service", Authority: authority.Management, CommonName: UserService, Organizations: []string{groupMasters}, Client: true},
		{Name: "management-administrator", Authority: authority.Management, CommonName: "muster:administrator", Organizations: []string{GroupAdministrators}, Client: true},
	}, nil
}
