// SPDX-License-Identifier: Apache-2.0

package podwebhookconfig

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The version and kind that the file must have.
const (
	APIVersion = "podidentity.muster.dev/v1alpha1"
	Kind       = "PodIdentityWebhookConfiguration"
)

// AssociationsPath is where the webhook is told of another file of service accounts.
const AssociationsPath = "/associations"

// None is the value that switches off a setting that has a default.
const None = "none"

// Configuration is the file.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	Server Server `json:"server"`
	// Region is for AWS_REGION and AWS_DEFAULT_REGION in pods; neither is set if absent.
	Region string `json:"region,omitempty"`
	// AnnotationDomain is the prefix of annotations; eks.amazonaws.com if absent.
	AnnotationDomain string      `json:"annotationDomain,omitempty"`
	WebIdentity      WebIdentity `json:"webIdentity,omitzero"`
	// ComposeRole makes an ARN of a role that is annotated by its name alone.
	ComposeRole *ComposeRole `json:"composeRole,omitempty"`
	// ConfigMapNamespace is where the ConfigMap pod-identity-webhook is, which names roles of service accounts without
	// annotations; it is not read if absent.
	ConfigMapNamespace string `json:"configMapNamespace,omitempty"`
	// GracePeriod is how long a pod waits for a service account that is not known yet, such as 500ms, which is the
	// default; with "none" a pod does not wait.
	GracePeriod          string               `json:"gracePeriod,omitempty"`
	ContainerCredentials ContainerCredentials `json:"containerCredentials,omitzero"`
	Account              Account              `json:"account,omitzero"`
}

// Server is where the API server asks.
type Server struct {
	BindAddress string `json:"bindAddress"`        // IP address and port, TLS
	Certificate string `json:"certificate"`        // file
	Key         string `json:"key"`                // file; may be the same
	ClientCA    string `json:"clientCA,omitempty"` // callers must have a certificate of it
	Health      string `json:"healthAddress"`      // IP address and port, without TLS for /healthz and /readyz
	// Metrics is the IP address and port of /metrics, with the certificate of the server, for clients that may get that
	// path from the API server; they are served nowhere if absent.
	Metrics string `json:"metricsAddress,omitempty"`
	// MetricsClientCA is the file of the authority whose client certificates name users that may read metrics, beside
	// tokens; tokens alone do if absent.
	MetricsClientCA string `json:"metricsClientCA,omitempty"`
	// Authority has the webhook write the file of its certificate and key itself, which are one file then.
	Authority *Authority `json:"authority,omitempty"`
}

// Authority is where the webhook keeps a certificate authority of its own, in a cluster that has nobody else to do so.
type Authority struct {
	Namespace string `json:"namespace"` // of the Secret and the Service
	Secret    string `json:"secret"`    // exists, and is empty at first
	Service   string `json:"service"`   // by which the API server asks
	// WebhookConfiguration is the MutatingWebhookConfiguration whose webhooks of that Service get the authority.
	WebhookConfiguration string `json:"webhookConfiguration"`
}

// WebIdentity is what tokens for STS are like.
type WebIdentity struct {
	Audience          string `json:"audience,omitempty"`          // sts.amazonaws.com if absent
	ExpirationSeconds int64  `json:"expirationSeconds,omitempty"` // 86400 if absent
	MountPath         string `json:"mountPath,omitempty"`
	RegionalEndpoints bool   `json:"regionalEndpoints,omitempty"` // AWS_STS_REGIONAL_ENDPOINTS=regional
}

// ComposeRole is the part of an ARN that a role's name does not tell.
type ComposeRole struct {
	Partition string `json:"partition,omitempty"` // aws if absent
	AccountID string `json:"accountID"`
}

// ContainerCredentials are for pods whose service account has a pod identity association. The defaults of absent fields
// are EKS's.
type ContainerCredentials struct {
	// File names the service accounts: {"identities":[{"namespace":"…","serviceAccount":"…"}]}. Nobody has an
	// association if it is absent.
	File string `json:"file,omitempty"`
	// Writer is the common name of a client certificate by server.clientCA. Whoever has it replaces the file by a PUT
	// of another one at AssociationsPath; nobody does if it is absent.
	Writer    string `json:"writer,omitempty"`
	FullURI   string `json:"fullURI,omitempty"`
	Audience  string `json:"audience,omitempty"`
	MountPath string `json:"mountPath,omitempty"`
	Volume    string `json:"volumeName,omitempty"`
	TokenPath string `json:"tokenPath,omitempty"`
}

// Account is an account of Muster's, or another endpoint than AWS, for pods with an identity.
type Account struct {
	// TrustFile has the authorities for AWS_CA_BUNDLE, in PEM; pods are not told any if it is absent.
	TrustFile string `json:"trustFile,omitempty"`
	// EndpointURL is for AWS_ENDPOINT_URL; it is not set if absent.
	EndpointURL string `json:"endpointURL,omitempty"`
}

// Grace is how long a pod waits for its service account.
func (c Configuration) Grace() time.Duration {
	if c.GracePeriod == None {
		return 0
	}
	d, _ := time.ParseDuration(c.GracePeriod)
	return d
}
