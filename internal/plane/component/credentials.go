// SPDX-License-Identifier: Apache-2.0

package component

import (
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/iam/caller"
	"muster.dev/muster/internal/network/clusternetwork"
)

// The groups that muster's own RBAC rules speak of.
const (
	// GroupAdministrators are the people of the kubeconfig that `muster up` writes.
	GroupAdministrators = "muster:administrators"
	// GroupKubeletClients may do everything on kubelets: the API server, for logs, exec and metrics.
	GroupKubeletClients = "muster:kubelet-clients"
	// UserCertificateController is who approves and signs, by the name that EKS gives it.
	UserCertificateController = "eks:certificate-controller"
	// UserAuthenticator is who reads access entries and keeps the roles of access policies, by the name that EKS gives
	// it.
	UserAuthenticator = "eks:authenticator"
	// UserPodWebhook is who gives pods identities, by the name that EKS gives it.
	UserPodWebhook = "eks:pod-identity-mutating-webhook"
	// UserKarpenter is the user of Karpenter in the control plane.
	UserKarpenter = "muster:karpenter"
	// UserSimulator is who reads the pods that are bound to simulated machines.
	UserSimulator = "muster:simulator"
	// UserService is `muster serve`.
	UserService = "muster:service"
)

// groupMasters is let through before RBAC is asked; only the service has it, which must set RBAC up.
const groupMasters = "system:masters"

// CredentialIdentity is the certificate of the identity service, which serves every cluster of the account.
const CredentialIdentity = "identity-service"

// CredentialAccount is the certificate by which callers know the account; CredentialAccountMetadata is that of instance
// metadata, and CredentialAccountAuthenticator that of a cluster's authenticator. See package caller.
const (
	CredentialAccount              = "account"
	CredentialAccountMetadata      = "account-metadata"
	CredentialAccountAuthenticator = "account-authenticator"
)

// UserFrontProxy is who speaks to aggregated APIs for users: an API server.
const UserFrontProxy = "front-proxy-client"

// CredentialAccountAPIs is the certificate by which the account serves APIs in a cluster; ServerAccountAPIs is the name
// that the API server asks it for: that of the Service which the APIService names.
const (
	CredentialAccountAPIs = "account-apis"
	ServerAccountAPIs     = ServiceAccountAPIs + "." + metav1.NamespaceSystem + ".svc"
	ServiceAccountAPIs    = "muster-explain"
)

// CredentialPlane is the certificate by which the components of a cluster know the account, as UserAccount. Its
// authority is that of the programs that speak for users: nobody gets a certificate of it by a CSR.
const (
	CredentialPlane = "plane"
	UserAccount     = "muster:account"
)

// ServerTokenSigner is the common name by which the account knows a cluster's token signer.
const ServerTokenSigner = "muster-token-signer"

// AccountCredentials are the certificates that the account's components and its administrators need.
func AccountCredentials(a Account) ([]authority.Credential, error) {
	services := reached(a.Places.Identity)
	for _, network := range a.VPCs { // ranges of two VPCs may be the same
		if own := clusternetwork.Services(network.CIDR); !slices.Contains(services, own) {
			services = append(services, own)
		}
	}
	return append(a.Issuers.credential(), []authority.Credential{
		{Name: ManagementEtcd, Authority: authority.ManagementEtcd, CommonName: "etcd", DNSNames: localhost(), Addresses: reached(a.Places.ManagementEtcd, a.Places.ManagementEtcdPeer), Client: true},
		{Name: clientOf(ManagementEtcd), Authority: authority.ManagementEtcd, CommonName: "management-apiserver", Client: true},
		{Name: probeOf(ManagementEtcd), Authority: authority.ManagementEtcd, CommonName: "probe", Client: true},

		{Name: "management-apiserver", Authority: authority.Management, CommonName: "management-apiserver", DNSNames: localhost(), Addresses: reached(a.Places.Management, a.Places.ManagementServer0, a.Places.ManagementServer1)},
		{Name: "management-service", Authority: authority.Management, CommonName: UserService, Organizations: []string{groupMasters}, Client: true},
		{Name: "management-administrator", Authority: authority.Management, CommonName: "muster:administrator", Organizations: []string{GroupAdministrators}, Client: true},

		{Name: CredentialIdentity, Authority: authority.Account, CommonName: "muster:identity-service", DNSNames: append(localhost(), a.Region.ServiceNames()...), Addresses: services},
		{Name: CredentialAccount, Authority: authority.Account, CommonName: "muster:account", DNSNames: []string{caller.ServerName}},
		callerCredential(CredentialAccountMetadata, caller.Metadata()),
		registryCredential(a),
	}...), nil
}

// callerCredential is the certificate of a caller of the account.
func callerCredential(name string, who caller.Caller) authority.Credential {
	commonName, organizations := who.Subject()
	return authority.Credential{Name: name, Authority: authority.Account, CommonName: commonName, Organizations: organizations, Client: true}
}

// UserInventory is the user that the cluster's certificate controller is in the management plane, where it may read the
// machines of the account.
func (c Config) UserInventory() string { return "muster:inventory:" + c.Issuer.ID }

// credentialInventory is a cluster's way to the machines in the management plane.
const credentialInventory = "certificate-controller-inventory"

// Membership are the certificates of the account's authorities that a cluster's components have. They lie with the
// cluster's own.
func Membership(c Config) []authority.Credential {
	authenticator := callerCredential(CredentialAccountAuthenticator, caller.Authenticator(c.Cluster.Spec.Name, c.Issuer.ID))
	authenticator.Path = c.Credential(CredentialAccountAuthenticator)
	return []authority.Credential{authenticator, {
		Name: credentialInventory, Path: c.Credential(credentialInventory), Authority: authority.Management, Client: true,
		CommonName: c.UserInventory(),
	}}
}

// Credentials are the certificates that the components and administrators of a cluster need.
func Credentials(c Config) ([]authority.Credential, error) {
	names, addresses, err := c.ServerNames()
	if err != nil {
		return nil, err
	}
	own := c.Issuers.forPods()
	if c.Simulates {
		own = append(own, authority.Credential{Name: Simulator, Authority: authority.Cluster, CommonName: UserSimulator, Client: true})
	}
	if c.Karpenter {
		own = append(own, authority.Credential{Name: Karpenter, Authority: authority.Cluster, CommonName: UserKarpenter, Client: true})
	}
	if c.VPC {
		own = append(own, authority.Credential{Name: CredentialAccountAPIs, Authority: authority.Cluster, CommonName: "muster:account-apis", DNSNames: []string{ServerAccountAPIs}})
	}
	return append(own, []authority.Credential{
		{Name: Etcd, Authority: authority.Etcd, CommonName: "etcd", DNSNames: localhost(), Addresses: reached(c.Places.Etcd, c.Places.EtcdPeer), Client: true},
		{Name: clientOf(Etcd), Authority: authority.Etcd, CommonName: "kube-apiserver", Client: true},
		{Name: probeOf(Etcd), Authority: authority.Etcd, CommonName: "probe", Client: true},

		{Name: "kube-apiserver", Authority: authority.Cluster, CommonName: "kube-apiserver", DNSNames: names, Addresses: addresses},
		{Name: "kubelet-client", Authority: authority.Cluster, CommonName: "kube-apiserver", Organizations: []string{GroupKubeletClients}, Client: true},
		{Name: "front-proxy-client", Authority: authority.FrontProxy, CommonName: UserFrontProxy, Client: true},
		{Name: "kube-controller-manager", Authority: authority.Cluster, CommonName: "system:kube-controller-manager", DNSNames: localhost(), Addresses: reached(c.Places.ControllerManager), Client: true},
		{Name: "kube-scheduler", Authority: authority.Cluster, CommonName: "system:kube-scheduler", DNSNames: localhost(), Addresses: reached(c.Places.Scheduler), Client: true},
		{Name: "certificate-controller", Authority: authority.Cluster, CommonName: UserCertificateController, DNSNames: localhost(), Addresses: reached(c.Places.CertificateControllerMetrics, c.Places.CertificateControllerAuthorization), Client: true},
		{Name: nodeAuthorizerClient, Authority: authority.FrontProxy, CommonName: nodeAuthorizerClient, Client: true},
		{Name: "authenticator", Authority: authority.Cluster, CommonName: UserAuthenticator, DNSNames: localhost(), Addresses: reached(c.Places.Authenticator), Client: true},
		{Name: PodWebhook, Authority: authority.Cluster, CommonName: UserPodWebhook, DNSNames: localhost(), Addresses: reached(c.Places.PodWebhook, c.Places.PodWebhookMetrics), Client: true},
		{Name: TokenSigner, Authority: authority.Cluster, CommonName: ServerTokenSigner, DNSNames: localhost(), Addresses: reached(c.Places.TokenSigner)},
		{Name: CredentialPlane, Authority: authority.FrontProxy, CommonName: UserAccount, Client: true},
		{Name: podWebhookClient, Authority: authority.FrontProxy, CommonName: podWebhookClient, Client: true},
		{Name: authenticatorClient, Authority: authority.FrontProxy, CommonName: authenticatorClient, Client: true},
		{Name: "service", Authority: authority.Cluster, CommonName: UserService, Organizations: []string{groupMasters}, Client: true},
		{Name: "administrator", Authority: authority.Cluster, CommonName: "muster:administrator", Organizations: []string{GroupAdministrators}, Client: true},
	}...), nil
}

// reached are the addresses that listeners are reached at, each once.
func reached(places ...Place) (addresses []netip.Addr) {
	for _, place := range places {
		if address := place.Reach.Addr(); !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

func localhost() []string { return []string{"localhost"} }
