// SPDX-License-Identifier: Apache-2.0

package authenticatorconfig

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The version and kind that the file must have.
const (
	APIVersion = "authenticator.muster.dev/v1alpha1"
	Kind       = "AuthenticatorConfiguration"
)

// The words that choices may have; the first of each is the default.
const (
	BackendSTS    = "sts"
	BackendMuster = "muster"

	ModeAPIAndConfigMap = "API_AND_CONFIG_MAP"
	ModeConfigMap       = "CONFIG_MAP"
	ModeAPI             = "API"
)

// Duration is one as Go writes it, such as 90s; empty for the default.
type Duration string

// Value of a duration that was validated.
func (d Duration) Value() time.Duration {
	parsed, _ := time.ParseDuration(string(d))
	return parsed
}

// Configuration is the file.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`
	// ClusterID is the name that tokens are signed for: the cluster's name for `aws eks get-token --cluster-name`.
	ClusterID string `json:"clusterID"`
	// Partition of AWS; aws if absent.
	Partition string `json:"partition,omitempty"`
	// AccountID is the cluster's own. If it is set, access entries of nodes must be of it.
	AccountID string `json:"accountID,omitempty"`

	Server         Server         `json:"server,omitzero"`
	Backend        string         `json:"backend,omitempty"` // sts (the default) or muster
	STS            STS            `json:"sts,omitzero"`
	Muster         *Muster        `json:"muster,omitempty"`
	EC2            *EC2           `json:"ec2,omitempty"`
	Mapping        Mapping        `json:"mapping,omitzero"`
	Cache          Cache          `json:"cache,omitzero"`
	Limits         Limits         `json:"limits,omitzero"`
	AccessPolicies AccessPolicies `json:"accessPolicies,omitzero"`
	// ScrubbedAccounts are accounts whose principals are not logged or told apart.
	ScrubbedAccounts []string `json:"scrubbedAccounts,omitempty"`
}

// Server is where TokenReviews are answered.
type Server struct {
	BindAddress string `json:"bindAddress,omitempty"` // 127.0.0.1:21362 if absent
	// StateDir has what `muster authenticator init` made: certificate.pem, key.pem and client-ca.pem. It stands for the
	// three below.
	StateDir    string `json:"stateDir,omitempty"`
	Certificate string `json:"certificate,omitempty"`
	Key         string `json:"key,omitempty"`
	// ClientCA is the authority of the certificates that callers must have. Without one any client that reaches the
	// address may ask, so it must be loopback.
	ClientCA string `json:"clientCA,omitempty"`
	// HealthAddress serves /healthz and /readyz without TLS; 127.0.0.1:21363 if absent, "none" for nowhere.
	HealthAddress string `json:"healthAddress,omitempty"`
	// MetricsAddress serves /metrics with the server's certificate, for clients that may get that path from the API
	// server; nowhere if absent.
	MetricsAddress string `json:"metricsAddress,omitempty"`
	// MetricsClientCA is the file of the authority whose client certificates name users that may read metrics, beside
	// tokens; tokens alone do if absent.
	MetricsClientCA string `json:"metricsClientCA,omitempty"`
	// Audiences that tokens are good for: those of the API server's --api-audiences. Without any it decides.
	Audiences []string `json:"audiences,omitempty"`
}

// STS is how tokens are understood, and AWS's or a compatible STS asked.
type STS struct {
	// Regions that AWS has and the partition's pattern does not.
	Regions []string `json:"regions,omitempty"`
	// Hosts that tokens may be made for beside those of AWS: HOST, HOST:PORT, http:// or https:// in front, =REGION
	// behind.
	Hosts []string `json:"hosts,omitempty"`
	// HostsOnly leaves AWS's hosts out: for an STS that is not AWS's, whose accounts are others' there.
	HostsOnly bool `json:"hostsOnly,omitempty"`
	// Endpoints are where to send what is meant for a host: URLs of private endpoints, by the host of tokens.
	Endpoints   map[string]string `json:"endpoints,omitempty"`
	CA          string            `json:"ca,omitempty"`    // file of authorities, beside none of the system's
	Proxy       string            `json:"proxy,omitempty"` // URL; no proxy if absent, whatever the environment says
	Timeout     Duration          `json:"timeout,omitempty"`
	Connections int               `json:"connections,omitempty"` // kept for each host, and the most at once; 64 if absent
	HTTP2       bool              `json:"http2,omitempty"`
}

// Muster is muster's own identity service, which knows the keys and says who made a token.
type Muster struct {
	// Socket of the service, where it is on this host, or Address, host:port, where it is not.
	Socket  string `json:"socket,omitempty"`
	Address string `json:"address,omitempty"`
	// CA has the account's authority in PEM, which the service's certificate is of.
	CA string `json:"ca"`
	// Credential has the certificate, of that authority too, and the key by which the service knows whose authenticator
	// this is.
	Credential string `json:"credential"`
	// StaleAfter is how long after the last word of the service what it said of a token may be used on; 3s if absent.
	StaleAfter Duration `json:"staleAfter,omitempty"`
}

// EC2 is asked about nodes. Without it no session is an instance's, and {{EC2PrivateDNSName}} is given to nobody.
type EC2 struct {
	Region    string  `json:"region,omitempty"`
	Endpoint  string  `json:"endpoint,omitempty"`
	PerSecond float64 `json:"perSecond,omitempty"` // calls; 5 if absent
	Burst     int     `json:"burst,omitempty"`     // 10 if absent
	// InstanceProfiles are the profiles that nodes have. Without any, profile and role need only be of one account.
	InstanceProfiles []InstanceProfile `json:"instanceProfiles,omitempty"`
}

// InstanceProfile is a profile and the role in it.
type InstanceProfile struct {
	ARN  string `json:"arn"`
	Role string `json:"role"`
}

// Mapping maps AWS principals to users.
type Mapping struct {
	// Mode is CONFIG_MAP, API_AND_CONFIG_MAP (the default) or API. It goes one way.
	Mode string `json:"mode,omitempty"`
	// File of mappings, read again when it changes.
	File string `json:"file,omitempty"`
	// FileOnly reads nothing from the cluster, so that no kubeconfig is needed.
	FileOnly bool `json:"fileOnly,omitempty"`
	// RolePatterns allows * in the names of roles, and sso entries.
	RolePatterns bool `json:"rolePatterns,omitempty"`
	// TrustedSessionNames are of roles whose sessions a service names, and not the caller of AssumeRole: such a session
	// is the node of its name.
	TrustedSessionNames []TrustedSessionNames `json:"trustedSessionNames,omitempty"`
	// ReservedPrefixes are the user names that a source may not give, by source: AccessEntry, IAMIdentityMapping,
	// aws-auth, file.
	ReservedPrefixes map[string][]string `json:"reservedPrefixes,omitempty"`
	// Namespace in which the mode is recorded; muster-system if absent.
	Namespace string `json:"namespace,omitempty"`
}

// TrustedSessionNames are the names that sessions of a role may have to be nodes of these names.
type TrustedSessionNames struct {
	Role  string   `json:"role"`  // ARN
	Names []string `json:"names"` // with one * in them at most
}

// Cache is what is remembered of tokens.
type Cache struct {
	TTL            Duration `json:"ttl,omitempty"`            // of a token's maker; 1m if absent
	NegativeTTL    Duration `json:"negativeTTL,omitempty"`    // of a "no" of STS; 10s if absent
	Size           int      `json:"size,omitempty"`           // tokens; 16384 if absent
	NegativeSize   int      `json:"negativeSize,omitempty"`   // 2048 if absent
	RememberKeys   int      `json:"rememberKeys,omitempty"`   // access keys known to be good; 8192 if absent
	MaxInstances   int      `json:"maxInstances,omitempty"`   // 16384 if absent
	InstanceMaxAge Duration `json:"instanceMaxAge,omitempty"` // of an answer of EC2's; 30s if absent
}

// Limits are how many questions are asked at once.
type Limits struct {
	Known   int      `json:"known,omitempty"`   // by access keys that were good before; 48 if absent
	Unknown int      `json:"unknown,omitempty"` // by others; 16 if absent
	PerKey  int      `json:"perKey,omitempty"`  // 4 if absent, 32 with backend muster
	Queue   int      `json:"queue,omitempty"`   // that wait, of each of the two; 256 if absent
	Wait    Duration `json:"wait,omitempty"`    // at most; 2s if absent
}

// AccessPolicies says whether RBAC is kept as access entries' policies say.
type AccessPolicies struct {
	Enabled bool `json:"enabled,omitempty"`
	// Alone says that there is one authenticator in the cluster. Several authenticators agree by a lease which of them
	// writes; a killed authenticator holds the lease for fifteen seconds.
	Alone bool `json:"alone,omitempty"`
}
