// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// APIVersion and Kind of the user data that this package reads.
const (
	APIVersion = "node.muster.dev/v1alpha1"
	Kind       = "NodeConfig"
)

// MaxNodeConfig bounds what is parsed, as EC2 bounds user data.
const MaxNodeConfig = 16 << 10

// NodeConfig is the user data of a machine: which cluster it joins, and how.
type NodeConfig struct {
	metav1.TypeMeta `json:",inline"`

	Cluster   ClusterDetails `json:"cluster"`
	Bootstrap *Bootstrap     `json:"bootstrap,omitempty"`
	Kubelet   KubeletOptions `json:"kubelet,omitzero"`
}

// ClusterDetails is what a machine must know of its cluster.
type ClusterDetails struct {
	Name string `json:"name"`
	// APIServerEndpoint is the URL of the API server, as the machine reaches it.
	APIServerEndpoint string `json:"apiServerEndpoint"`
	// CertificateAuthority is PEM (base64 in YAML): whom the machine trusts to be the API server.
	CertificateAuthority []byte `json:"certificateAuthority"`
	ServiceCIDR          string `json:"serviceCIDR"`
	PodCIDR              string `json:"podCIDR"`
	ClusterDomain        string `json:"clusterDomain"`
}

// Bootstrap is how a machine proves itself when it joins. A machine that has joined needs none.
type Bootstrap struct {
	// Token is a bootstrap token, good for this one machine.
	Token string `json:"token"`
}

// KubeletOptions are what may be chosen of a kubelet.
type KubeletOptions struct {
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	// MaxPods is 110 unless something else is chosen.
	MaxPods int32 `json:"maxPods,omitempty"`
}

const (
	defaultMaxPods = 110
	limitMaxPods   = 250 // of a /24 of pod addresses per node, with room for those being replaced
)

var tokenPattern = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

// ParseNodeConfig reads user data. Unknown fields are refused, and all problems are reported at once.
func ParseNodeConfig(userData []byte) (NodeConfig, error) {
	if len(userData) > MaxNodeConfig {
		return NodeConfig{}, fmt.Errorf("NodeConfig is %d bytes long; %d are allowed", len(userData), MaxNodeConfig)
	}
	var config NodeConfig
	if err := yaml.UnmarshalStrict(userData, &config); err != nil {
		return NodeConfig{}, fmt.Errorf("reading NodeConfig: %w", err)
	}
	if err := config.validate().ToAggregate(); err != nil {
		return NodeConfig{}, fmt.Errorf("NodeConfig: %w", err)
	}
	if config.Kubelet.MaxPods == 0 {
		config.Kubelet.MaxPods = defaultMaxPods
	}
	return config, nil
}

// validate returns every problem there is. It never repeats the token.
func (c NodeConfig) validate() field.ErrorList {
	var problems field.ErrorList
	if c.APIVersion != APIVersion {
		problems = append(problems, field.NotSupported(field.NewPath("apiVersion"), c.APIVersion, []string{APIVersion}))
	}
	if c.Kind != Kind {
		problems = append(problems, field.NotSupported(field.NewPath("kind"), c.Kind, []string{Kind}))
	}
	problems = append(problems, c.Cluster.validate(field.NewPath("cluster"))...)
	if c.Bootstrap != nil && !tokenPattern.MatchString(c.Bootstrap.Token) {
		problems = append(problems, field.Invalid(field.NewPath("bootstrap", "token"), "(not shown)", "must be six and sixteen of a-z and 0-9 with a dot between"))
	}
	return append(problems, c.Kubelet.validate(field.NewPath("kubelet"))...)
}

func (c ClusterDetails) validate(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if c.Name == "" {
		problems = append(problems, field.Required(path.Child("name"), ""))
	}
	endpoint, err := url.Parse(c.APIServerEndpoint)
	if err != nil || endpoint.Scheme != "https" || endpoint.Host == "" || endpoint.User != nil || endpoint.RawQuery != "" {
		problems = append(problems, field.Invalid(path.Child("apiServerEndpoint"), c.APIServerEndpoint, "must be a URL like https://192.168.64.2:443"))
	}
	if err := validateAuthorities(c.CertificateAuthority); err != nil {
		problems = append(problems, field.Invalid(path.Child("certificateAuthority"), "(not shown)", err.Error()))
	}
	for _, network := range []struct{ name, cidr string }{{"serviceCIDR", c.ServiceCIDR}, {"podCIDR", c.PodCIDR}} {
		prefix, err := netip.ParsePrefix(network.cidr)
		if err != nil || !prefix.Addr().Is4() || prefix.Masked() != prefix {
			problems = append(problems, field.Invalid(path.Child(network.name), network.cidr, "must be a range of IPv4 addresses like 10.100.0.0/16"))
		} else if _, err := ClusterDNS(prefix); err != nil && network.name == "serviceCIDR" {
			problems = append(problems, field.Invalid(path.Child(network.name), network.cidr, err.Error()))
		}
	}
	for _, message := range validation.IsDNS1123Subdomain(c.ClusterDomain) {
		problems = append(problems, field.Invalid(path.Child("clusterDomain"), c.ClusterDomain, message))
	}
	return problems
}

// validateAuthorities checks that there is nothing in the bundle but certificates, and one at least.
func validateAuthorities(bundle []byte) error {
	count := 0
	for {
		block, rest := pem.Decode(bundle)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("must hold certificates only, not a %s", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d: %w", count+1, err)
		}
		count++
		bundle = rest
	}
	if count == 0 {
		return fmt.Errorf("must be the base64 of at least one certificate in PEM")
	}
	return nil
}

func (o KubeletOptions) validate(path *field.Path) field.ErrorList {
	problems := metav1validation.ValidateLabels(o.Labels, path.Child("labels"))
	for i, taint := range o.Taints {
		at := path.Child("taints").Index(i)
		problems = append(problems, metav1validation.ValidateLabelName(taint.Key, at.Child("key"))...)
		for _, message := range validation.IsValidLabelValue(taint.Value) {
			problems = append(problems, field.Invalid(at.Child("value"), taint.Value, message))
		}
		switch taint.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			problems = append(problems, field.NotSupported(at.Child("effect"), taint.Effect,
				[]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}))
		}
		if taint.TimeAdded != nil {
			problems = append(problems, field.Forbidden(at.Child("timeAdded"), "is set by the cluster"))
		}
	}
	if o.MaxPods < 0 || o.MaxPods > limitMaxPods {
		problems = append(problems, field.Invalid(path.Child("maxPods"), o.MaxPods, fmt.Sprintf("must be between 1 and %d", limitMaxPods)))
	}
	return problems
}

// Marshal writes the user data that ParseNodeConfig reads.
func (c NodeConfig) Marshal() ([]byte, error) {
	c.TypeMeta = metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind}
	if err := c.validate().ToAggregate(); err != nil {
		return nil, fmt.Errorf("NodeConfig: %w", err)
	}
	raw, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("writing NodeConfig: %w", err)
	}
	return raw, nil
}
