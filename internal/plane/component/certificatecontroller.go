// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policyconfig"
)

// defaultCertificateDuration is how long a kubelet's certificate is good for: short, so that a lost key is soon
// worthless.
const defaultCertificateDuration = 7 * 24 * time.Hour

// SignerAppServing is EKS's signer of serving certificates for workloads.
const SignerAppServing = "beta.eks.amazonaws.com/app-serving"

// certificateController approves and signs what kubelets ask for, and signs what people approved for users and
// workloads. It is the only process with the key of kubelets' authority, beside the service itself.
func certificateController(c Config) (Spec, error) {
	clusterPath, inventoryPath := c.file(CertificateController, "kubeconfig"), c.file(CertificateController, "inventory-kubeconfig")
	cluster, err := kubeconfig(clusterPath, c.Places.Published.URL(), c.Authority("cluster"), c.Credential("certificate-controller"))
	if err != nil {
		return Spec{}, err
	}
	inventory, err := kubeconfig(inventoryPath, c.Account.Places.Management.URL(), c.Account.Authority("management"), c.Credential(credentialInventory))
	if err != nil {
		return Spec{}, err
	}
	configuration, err := c.certificatePolicy(inventoryPath)
	if err != nil {
		return Spec{}, err
	}
	raw, err := yaml.Marshal(configuration)
	if err != nil {
		return Spec{}, fmt.Errorf("rendering the policy file: %w", err)
	}
	policy := File{Path: c.file(CertificateController, "policy.yaml"), Mode: modePrivate, Content: string(raw)}
	return Spec{
		Name: CertificateController,
		Path: c.program("muster-certificate-controller"),
		Args: flags(map[string]string{
			"config":     policy.Path,
			"kubeconfig": clusterPath,
		}),
		Files:       []File{cluster, inventory, policy},
		Address:     c.Places.CertificateController.Listen.String(),
		Credentials: sorted(c.Credential("certificate-controller"), c.Credential(credentialInventory), c.KubeletSigner(), c.Authority("cluster"), c.AuthorityKey("cluster")),
		View: &View{
			Reads:  sorted(c.Credential("certificate-controller"), c.Credential(credentialInventory), c.KubeletSigner(), c.AuthorityKey("cluster")),
			Public: sorted(c.Authority("cluster"), c.Authority("front-proxy")), Fixed: []string{c.Account.Authority("management")},
		},
		Probe: &Probe{URL: "http://" + c.Places.CertificateController.Reach.String() + "/readyz"},
		After: []string{Front, APIServer},
	}, nil
}

// certificatePolicy is the policy file of muster's own clusters. It serves the signers that EKS serves.
func (c Config) certificatePolicy(inventory string) (policyconfig.Configuration, error) {
	names, addresses, err := c.ServerNames()
	if err != nil {
		return policyconfig.Configuration{}, err
	}
	// With a certificate for the issuer's host anybody could publish keys of their own; its address, a loopback
	// address, no node may have.
	names = append(names, c.Issuers.names()...)
	network := c.Cluster.Spec.Network
	reserved := []string{network.ServiceCIDR, c.Network.PodCIDR.String()}
	ranges := c.Network.Reserved()
	for _, own := range addresses {
		ranges = append(ranges, netip.PrefixFrom(own, own.BitLen()))
	}
	for _, own := range ranges {
		if !slices.Contains(reserved, own.String()) {
			reserved = append(reserved, own.String())
		}
	}
	durations := c.Cluster.Spec.Certificates
	return policyconfig.Configuration{
		TypeMeta: metav1.TypeMeta{APIVersion: policyconfig.APIVersion, Kind: policyconfig.Kind},
		Mode:     policyconfig.ModeApproveAndSign,
		Signers: []policyconfig.Signer{
			{Name: pki.SignerKubeletClient, Duration: life(durations.ClientDuration), Key: "kubelet"},
			{Name: pki.SignerKubeletServing, Duration: life(durations.ServingDuration), Key: "kubelet"},
			{Name: pki.SignerClient, Duration: life(nil), Key: "cluster"},
			{Name: pki.SignerLegacyUnknown, Duration: life(nil), Key: "cluster"},
			{Name: SignerAppServing, Duration: life(nil), Key: "cluster", Profile: pki.KindServing},
		},
		Keys: []policyconfig.Key{
			// Certificate and key are one file, which a rotation replaces. The rotation counts nodes' certificates, so
			// nobody else's are signed with it; and pods verify each other by the cluster's authority
			// (kube-root-ca.crt).
			{Name: "kubelet", File: &policyconfig.File{Certificate: c.KubeletSigner(), Key: c.KubeletSigner()}},
			{Name: "cluster", File: &policyconfig.File{Certificate: c.Authority("cluster"), Key: c.AuthorityKey("cluster")}},
		},
		Rules: policyconfig.Rules{Reserved: policyconfig.Reserved{
			ClusterDomain: network.ClusterDomain, Names: names, Addresses: reserved,
		}},
		Inventory: policyconfig.Inventory{Sources: []policyconfig.Source{
			{Machines: &policyconfig.Machines{Kubeconfig: inventory, ClusterName: c.Cluster.Spec.Name}},
			// Hosts that people registered (muster token create --node-name --address), in the cluster itself.
			{Static: &policyconfig.Static{ConfigMap: &policyconfig.ConfigMap{Namespace: policyconfig.HostsNamespace, Name: policyconfig.HostsConfigMap}}},
		}},
		// Only one certificate controller runs for a cluster, so it needs no leader election.
		LeaderElection: policyconfig.LeaderElection{Enabled: new(false)},
		Health:         policyconfig.Endpoint{BindAddress: c.Places.CertificateController.Listen.String()},
		Metrics: policyconfig.Endpoint{
			BindAddress: c.Places.CertificateControllerMetrics.Listen.String(),
			Certificate: c.Credential("certificate-controller"), Key: c.Credential("certificate-controller"), ClientCA: c.Authority("cluster"),
		},
		Authorization: policyconfig.Endpoint{
			BindAddress: c.Places.CertificateControllerAuthorization.Listen.String(),
			Certificate: c.Credential("certificate-controller"), Key: c.Credential("certificate-controller"), ClientCA: c.Authority("front-proxy"),
		},
	}, nil
}

func life(d *metav1.Duration) policyconfig.Duration {
	return policyconfig.Duration(durationOr(d).String())
}

func durationOr(d *metav1.Duration) time.Duration {
	if d == nil {
		return defaultCertificateDuration
	}
	return d.Duration
}
