// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/network/clusternetwork"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/statedir"
)

// Account is everything the specs of the account's own processes are made from: the management plane, and what all
// clusters share.
type Account struct {
	State  statedir.Dir
	BinDir string
	// Region that the account is in.
	Region region.Region
	// Places of its components.
	Places AccountPlaces
	// Issuers are where the documents of all clusters' issuers are served.
	Issuers Issuers
	// EncryptionKey encrypts the management plane's Secrets at rest: 32 bytes in base64.
	EncryptionKey string
	// VPC is false where machines are only simulated: then nothing is reached through a VPC.
	VPC bool
	// VPCs are the account's private networks.
	VPCs []VPC
	// Logs says that logs of control planes are kept, or were.
	Logs bool
}

// VPC is a private network of the account.
type VPC struct {
	ID   string
	CIDR netip.Prefix
	// Egress says that it has a way out.
	Egress bool
	// Balancers says that clusters in it have load balancers.
	Balancers bool
}

// Config is everything the specs of one cluster are made from.
type Config struct {
	Account

	// Dir is the cluster's own directory.
	Dir     statedir.Cluster
	Cluster v1alpha1.Cluster
	// Places of its components.
	Places Places
	// Issuer of service account tokens.
	Issuer Issuer
	// EncryptionKey encrypts the cluster's Secrets at rest: 32 bytes in base64. No other plane has it.
	EncryptionKey string
	// Release of Kubernetes that its control plane runs.
	Release release.Release
	// TrustedAuthority is the certificate of the cluster's authority, in PEM, for objects that say whom an API server is to
	// trust. It is read where it is needed.
	TrustedAuthority string
	// Network is the cluster's as it was resolved: what its spec leaves out was chosen.
	Network clusternetwork.Network
	// Simulates says that machines of the cluster are simulated, now or soon.
	Simulates bool
	// Karpenter says that Karpenter runs beside the scheduler.
	Karpenter bool
	// HostMemory is the memory of the host in bytes; 0 if it is not known.
	HostMemory int64
}

// The names of the processes.
const (
	Etcd                  = "etcd"
	ManagementEtcd        = "management-etcd"
	ManagementFront       = "management-front"
	Management            = "management-apiserver"
	Registry              = "registry"
	Front                 = "front"
	APIServer             = "kube-apiserver"
	ControllerManager     = "kube-controller-manager"
	Scheduler             = "kube-scheduler"
	CertificateController = "certificate-controller"
	Authenticator         = "authenticator"
	PodWebhook            = "pod-identity-webhook"
	TokenSigner           = "token-signer"
	WebhookProxy          = "webhook-proxy"
	Simulator             = "simulator"
	Karpenter             = "karpenter"
	KarpenterProxy        = "karpenter-proxy"
)

// ManagementSpecs are the processes of the management plane, in the order they are best started and shown, with one API
// server, in the first slot.
func ManagementSpecs(a Account) []Spec {
	return []Spec{managementEtcd(a), managementFront(a), managementServer(a, 0)}
}

// AccountSpecs are the account's own processes beside its management plane, in the order they are best started and shown.
func AccountSpecs(a Account) []Spec {
	specs := []Spec{registry(a)}
	if a.Logs {
		specs = append(specs, LogStoreSpec(a))
	}
	if a.VPC {
		for _, network := range a.VPCs {
			specs = append(specs, VPCSpec(a, network.ID))
			if network.Egress {
				specs = append(specs, WayOutSpec(a, network.ID))
			}
			if network.Balancers {
				specs = append(specs, BalancerSpec(a, network.ID))
			}
		}
	}
	return specs
}

// Specs are the processes of one cluster, in the order they are best started and shown, with one API server, in the
// first slot.
func Specs(c Config) ([]Spec, error) {
	builders := []func(Config) (Spec, error){etcd, tokenSigner, webhookProxy, front, firstAPIServer, controllerManager, scheduler, certificateController, authenticator}
	if c.Simulates {
		builders = append(builders, simulator)
	}
	if c.VPC { // elsewhere no machine runs pods
		builders = append(builders, podWebhook)
	}
	if c.Karpenter {
		builders = append(builders, karpenterProxy, karpenter)
	}
	specs := make([]Spec, 0, len(builders))
	for _, build := range builders {
		spec, err := build(c)
		if err != nil {
			return nil, err
		}
		spec.Cluster = c.Dir.Namespace()
		specs = append(specs, spec)
	}
	return specs, nil
}

func (a Account) program(name string) string { return filepath.Join(a.BinDir, name) }

// kubernetes is a program of the cluster's release.
func (c Config) kubernetes(name string) string { return c.Release.Program(c.BinDir, name) }

// kubernetesFlags are the arguments of a program of the cluster's release: those of every release, its own, and the
// feature gates that the cluster sets.
func (c Config) kubernetesFlags(name string, values map[string]string) []string {
	const gates = "feature-gates"
	maps.Copy(values, c.Release.Flags[name])
	if set := FeatureGateFlag(c.Cluster.Spec.FeatureGates); set != "" {
		values[gates] = strings.TrimPrefix(values[gates]+","+set, ",")
	}
	return flags(values)
}

// etcdMembers are the URLs of the members of the cluster's etcd.
func (c Config) etcdMembers() []string { return []string{c.Places.Etcd.URL()} }

func (a Account) file(component, name string) string {
	return filepath.Join(a.State.Component(component), name)
}

func (c Config) file(component, name string) string {
	return filepath.Join(c.Dir.Component(component), name)
}

// Authority is the file with the certificate of one of the account's authorities.
func (a Account) Authority(name string) string { return authorityFile(a.State.PKI(), name) }

// Authority is the file with the certificate of one of the cluster's authorities.
func (c Config) Authority(name string) string { return authorityFile(c.Dir.PKI(), name) }

func authorityFile(pki, name string) string { return filepath.Join(pki, name, "ca.pem") }

// AuthorityKey is the file with the key of one of the cluster's authorities.
func (c Config) AuthorityKey(name string) string {
	return filepath.Join(c.Dir.PKI(), name, "ca-key.pem")
}

// The files of the authority of kubelets' certificates, which is one after another (package rotation). Each is replaced
// in one rename and read again by the programs that use it.

// KubeletSigner is the file with the certificate and the key that sign for kubelets now. Both are in it.
func (c Config) KubeletSigner() string { return c.kubelet("signing.pem") }

// KubeletClientCA is the bundle of authorities that are trusted to sign client certificates, of kubelets and of all
// others.
func (c Config) KubeletClientCA() string { return c.kubelet("client-ca.pem") }

// KubeletServingCA is the bundle of authorities that are trusted to sign kubelets' serving certificates.
func (c Config) KubeletServingCA() string { return c.kubelet("serving-ca.pem") }

func (c Config) kubelet(name string) string {
	return filepath.Join(c.Dir.PKI(), authority.Kubelet, name)
}

// Credential is the file with the certificate and key of one of the account's components. Both are in one file so that
// a renewal replaces the pair in one rename: no reader ever sees a certificate with another one's key.
func (a Account) Credential(name string) string { return credentialFile(a.State.PKI(), name) }

// Credential is the file with the certificate and key of one of the cluster's components.
func (c Config) Credential(name string) string { return credentialFile(c.Dir.PKI(), name) }

func credentialFile(pki, name string) string { return filepath.Join(pki, "issued", name+".pem") }

// SigningKey is the file with the key that signs the service account tokens of the management plane.
func (a Account) SigningKey() string { return signingKeyFile(a.State.PKI(), authority.Management) }

// SigningKey is the file with the key that signs service account tokens in Secrets, which never end; other tokens are
// signed with TokenKeys.
func (c Config) SigningKey() string { return signingKeyFile(c.Dir.PKI(), authority.Cluster) }

func signingKeyFile(pki, plane string) string {
	return filepath.Join(pki, "service-account", plane+".pem")
}

// etcdFlags are an API server's way to the members of its plane's etcd.
func etcdFlags(prefix string, members []string, authority, credential string) map[string]string {
	return map[string]string{
		"etcd-cafile": authority, "etcd-certfile": credential, "etcd-keyfile": credential,
		"etcd-prefix": prefix, "etcd-servers": strings.Join(members, ","),
	}
}

// sorted are files, each once.
func sorted(files ...string) []string { return slices.Compact(slices.Sorted(slices.Values(files))) }

// EndpointPort is where the API server answers at its addresses in the VPC, and nowhere else, as on EKS: security
// groups of others let it in.
const EndpointPort = 443

// Endpoint is the API server's private address in the VPC that machines are told; it has another one.
func (c Config) Endpoint() (netip.Addr, error) { return c.Network.Endpoint() }

// PrivateURL is where machines reach the API server: at its address in the VPC, or where there is none, where everybody
// does.
func (c Config) PrivateURL() (string, error) {
	if !c.VPC {
		return c.Places.Published.URL(), nil
	}
	address, err := c.Endpoint()
	if err != nil {
		return "", err
	}
	return "https://" + netip.AddrPortFrom(address, EndpointPort).String(), nil
}

// ServiceAddress is the cluster address of the API server's own Service: the first of the range.
func (c Config) ServiceAddress() (netip.Addr, error) {
	return host(c.Cluster.Spec.Network.ServiceCIDR, 1)
}

// DNSAddress is the cluster address of the cluster's DNS: the tenth of the range, as on EKS.
func (c Config) DNSAddress() (netip.Addr, error) {
	return host(c.Cluster.Spec.Network.ServiceCIDR, 10)
}

func host(cidr string, n int) (netip.Addr, error) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("reading network: %w", err)
	}
	addr := prefix.Masked().Addr()
	for range n {
		addr = addr.Next()
	}
	if !prefix.Contains(addr) {
		return netip.Addr{}, fmt.Errorf("network %s is too small to have an address %d", cidr, n)
	}
	return addr, nil
}

// ServerNames are the names and addresses that the API server's certificate is good for.
func (c Config) ServerNames() (names []string, addresses []netip.Addr, err error) {
	if _, err := c.Endpoint(); err != nil {
		return nil, nil, err
	}
	service, err := c.ServiceAddress()
	if err != nil {
		return nil, nil, err
	}
	names = localhost()
	name := "kubernetes"
	for part := range strings.SplitSeq("default.svc."+c.Cluster.Spec.Network.ClusterDomain, ".") {
		names = append(names, name)
		name += "." + part
	}
	addresses = append(reached(c.Places.Published, c.Places.APIServer0, c.Places.APIServer1, c.Places.APIServer2), c.Network.Addresses...)
	return append(names, name), append(addresses, service), nil
}
