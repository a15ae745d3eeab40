// SPDX-License-Identifier: Apache-2.0

package policyconfig

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The version and kind that a policy file must have.
const (
	APIVersion = "certificates.muster.dev/v1alpha1"
	Kind       = "CertificateControllerConfiguration"
)

// Duration is one as Go writes it, such as 168h; empty for the default.
type Duration string

// Configuration is a policy file.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`
	// Mode is approve-only, sign-only, approve-and-sign (the default) or observe.
	Mode string `json:"mode,omitempty"`
	// Workers is how many requests are handled at once; 0 follows latency.
	Workers int `json:"workers,omitempty"`
	// ShutdownGrace is how long requests in hand may take to end when the controller is told to stop; 10 s if absent.
	ShutdownGrace Duration `json:"shutdownGrace,omitempty"`

	// Signers are all that is ever touched.
	Signers   []Signer  `json:"signers"`
	Keys      []Key     `json:"keys,omitempty"`
	Trust     *Trust    `json:"trust,omitempty"`
	Rules     Rules     `json:"policy,omitzero"`
	Inventory Inventory `json:"inventory,omitzero"`

	Register       Register       `json:"register,omitzero"`
	Pruning        Pruning        `json:"pruning,omitzero"`
	LeaderElection LeaderElection `json:"leaderElection,omitzero"`
	Health         Endpoint       `json:"health,omitzero"`
	Metrics        Endpoint       `json:"metrics,omitzero"`
	// Authorization is where an API server asks about requests of nodes: an authorization webhook that refuses client
	// certificates of machines that are gone.
	Authorization Endpoint `json:"authorization,omitzero"`
}

// Signer is one signer that is served.
type Signer struct {
	Name string `json:"name"`
	// Duration of its certificates; 168h if absent.
	Duration Duration `json:"duration,omitempty"`
	// Key that signs, by name; the only one if absent.
	Key string `json:"key,omitempty"`
	// Profile of a signer that upstream does not know: serving or client.
	Profile string `json:"profile,omitempty"`
}

// Key is one signing key with its certificate.
type Key struct {
	Name   string  `json:"name"`
	File   *File   `json:"file,omitempty"`
	PKCS11 *PKCS11 `json:"pkcs11,omitempty"`
}

// File is a key in a PEM file. Both may be the same file.
type File struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// PKCS11 is a key in a token.
type PKCS11 struct {
	Certificate string `json:"certificate"`
	Program     string `json:"program,omitempty"` // muster-pkcs11 if absent
	Module      string `json:"module"`
	Token       string `json:"token"`
	KeyLabel    string `json:"keyLabel,omitempty"`
	KeyID       string `json:"keyID,omitempty"` // in hexadecimal
	PINFile     string `json:"pinFile"`
	Sessions    int    `json:"sessions,omitempty"`
}

// Trust is what is trusted beside the certificates that sign, while authorities are replaced.
type Trust struct {
	Client  []string `json:"client,omitempty"`  // files in PEM
	Serving []string `json:"serving,omitempty"` // files in PEM
	// Publish is where the bundles are published.
	Publish *Namespaced `json:"publish,omitempty"`
}

// Namespaced is a place for objects.
type Namespaced struct {
	Namespace string `json:"namespace"`
}

// Rules are the operator's choices for the rules.
type Rules struct {
	AllowEd25519  bool         `json:"allowEd25519,omitempty"`
	MinExpiration Duration     `json:"minExpiration,omitempty"`
	MaxExpiration Duration     `json:"maxExpiration,omitempty"`
	MaxFactAge    Duration     `json:"maxFactAge,omitempty"`
	Reserved      Reserved     `json:"reserved,omitzero"`
	Bootstrap     Bootstrap    `json:"bootstrap,omitzero"`
	AccessReview  AccessReview `json:"accessReview,omitzero"`
	Credential    Credential   `json:"credential,omitzero"`
	// ServingRenewal lets the certificate that a kubelet serves with vouch for the next one, where the inventory knows
	// no machine.
	ServingRenewal *ServingRenewal `json:"servingRenewal,omitempty"`
	// ApprovalReasons are reasons of approvals that count as a person's, beside those of kubectl and of muster csr
	// approve.
	ApprovalReasons []string `json:"approvalReasons,omitempty"`
}

// Credential says what nodes have to show.
type Credential struct {
	// Required leaves a node waiting if the API server did not report the client certificate of its request.
	Required bool `json:"required,omitempty"`
}

// ServingRenewal says how kubelets are asked for the certificates that they serve with.
type ServingRenewal struct {
	// Authorities are files in PEM of those that sign kubelets' serving certificates.
	Authorities []string `json:"authorities"`
	Port        int      `json:"port,omitempty"` // of kubelets; 10250 if absent
}

// Reserved is what no node may have.
type Reserved struct {
	ClusterDomain string   `json:"clusterDomain,omitempty"` // cluster.local if absent
	Names         []string `json:"names,omitempty"`
	Addresses     []string `json:"addresses,omitempty"` // networks such as 10.96.0.0/12, or single addresses
}

// Bootstrap says what bootstrap tokens are good for.
type Bootstrap struct {
	// UnboundTokens is refuse (the default) or allow.
	UnboundTokens string `json:"unboundTokens,omitempty"`
	// Window is how long after a machine was made its first certificate may be asked for; no limit if absent.
	Window   Duration  `json:"window,omitempty"`
	Bindings []Binding `json:"bindings,omitempty"`
}

// Binding limits the tokens of a group, or lets a user ask without a token. Either Group or User is set.
type Binding struct {
	Group         string   `json:"group,omitempty"`
	User          string   `json:"user,omitempty"`
	NodeNames     []string `json:"nodeNames,omitempty"`     // globs
	MachineGroups []string `json:"machineGroups,omitempty"` // names
}

// AccessReview says how the API server is asked what requesters may do.
type AccessReview struct {
	PerIdentity bool `json:"perIdentity,omitempty"`
}

// Inventory is where machines are known from.
type Inventory struct {
	Combine string   `json:"combine,omitempty"` // any (the default) or all
	Sources []Source `json:"sources,omitempty"`
}

// Source is one source; exactly one field is set.
type Source struct {
	Machines   *Machines   `json:"machines,omitempty"`
	Static     *Static     `json:"static,omitempty"`
	DNS        *DNS        `json:"dns,omitempty"`
	ClusterAPI *ClusterAPI `json:"clusterAPI,omitempty"`
	EC2        *EC2        `json:"ec2,omitempty"`
	NodeStatus *NodeStatus `json:"nodeStatus,omitempty"`
}

// Machines are those of Muster's management plane.
type Machines struct {
	Kubeconfig  string `json:"kubeconfig"`
	ClusterName string `json:"clusterName,omitempty"`
}

// Static is a list in a file or in a ConfigMap.
type Static struct {
	File      string     `json:"file,omitempty"`
	ConfigMap *ConfigMap `json:"configMap,omitempty"`
}

// ConfigMap names one.
type ConfigMap struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// DNS is what resolvers say.
type DNS struct {
	Resolvers []string `json:"resolvers,omitempty"` // address:port; the system's resolvers if absent
	Domain    string   `json:"domain,omitempty"`
	Timeout   Duration `json:"timeout,omitempty"`
}

// ClusterAPI are Cluster API's Machines.
type ClusterAPI struct {
	Kubeconfig  string `json:"kubeconfig,omitempty"` // this cluster if absent
	Namespace   string `json:"namespace,omitempty"`  // all if absent
	ClusterName string `json:"clusterName,omitempty"`
}

// EC2 are instances of EC2.
type EC2 struct {
	Region    string              `json:"region,omitempty"`
	Endpoint  string              `json:"endpoint,omitempty"`
	Filters   map[string][]string `json:"filters,omitempty"`
	NodeNames string              `json:"nodeNames,omitempty"` // private-dns-name (the default), instance-id or resource-name
	// GroupTag is the tag that names the group of a machine; eks:nodegroup-name if absent.
	GroupTag string `json:"groupTag,omitempty"`
}

// NodeStatus is what nodes say about themselves.
type NodeStatus struct{}

// Register is where issued certificates are recorded.
type Register struct {
	Namespace string `json:"namespace,omitempty"` // muster-system if absent
}

// Pruning of superseded requests.
type Pruning struct {
	Keep int `json:"keep,omitempty"` // of one node and signer; 2 if absent, -1 keeps all
}

// LeaderElection among replicas.
type LeaderElection struct {
	// Enabled is true if absent: set it to false only if there is one replica for sure.
	Enabled   *bool  `json:"enabled,omitempty"`
	Namespace string `json:"namespace,omitempty"` // muster-system if absent
	Name      string `json:"name,omitempty"`      // muster-certificate-controller if absent
}

// Endpoint is where something is served.
type Endpoint struct {
	BindAddress string `json:"bindAddress,omitempty"`
	// Certificate and Key are files of the serving certificate; for metrics one is made if absent.
	Certificate string `json:"certificate,omitempty"`
	Key         string `json:"key,omitempty"`
	// ClientCA is the file of the authority whose client certificates name users that may read metrics, beside tokens;
	// tokens alone do if absent. For authorization it is that of the API server's client certificate, which it must
	// show.
	ClientCA string `json:"clientCA,omitempty"`
}
