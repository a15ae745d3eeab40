// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns all that keeps a machine with this from becoming a node. The required fields depend on how the
// machine joins: without spec.join, all that EKS demands; with it, those that the cluster cannot be asked for. It never
// repeats the token.
func (s Spec) Validate() field.ErrorList {
	path := field.NewPath(pathSpec)
	problems := s.Cluster.required(path.Child("cluster"), s)
	problems = append(problems, s.Cluster.validate(path.Child("cluster"))...)
	problems = append(problems, s.Containerd.validate(path.Child("containerd"))...)
	problems = append(problems, s.Kubelet.validate(path.Child("kubelet"))...)
	problems = append(problems, s.Instance.validate(path.Child("instance"))...)
	problems = append(problems, validateGates(path.Child("featureGates"), s.FeatureGates)...)
	problems = append(problems, s.Join.validate(path.Child("join"))...)
	if len(problems) == 0 && len(s.Cluster.CertificateAuthority) > 0 {
		if _, err := Pinned(s.Cluster.CertificateAuthority, s.Join.CACertHashes); err != nil {
			problems = append(problems, field.Invalid(path.Child("join", "caCertHashes"), s.Join.CACertHashes, err.Error()))
		}
	}
	return problems
}

// Discovers reports whether the machine finds what it must know of the cluster.
func (j Join) Discovers() bool { return j.Token != "" || j.TokenFile != "" || j.DiscoveryFile != "" }

// Proves reports whether the machine was told how to prove itself to the cluster.
func (j Join) Proves() bool { return j.InstanceRole || j.Token != "" || j.TokenFile != "" }

func (c Cluster) required(path *field.Path, s Spec) field.ErrorList {
	var problems field.ErrorList
	need := func(missing bool, name, why string) {
		if missing {
			problems = append(problems, field.Required(path.Child(name), why))
		}
	}
	join := s.Join
	need(c.Name == "" && !join.Discovers(), "name", "say which cluster the machine joins")
	need(c.APIServerEndpoint == "" && join.DiscoveryFile == "", "apiServerEndpoint", "give the URL of the API server")
	trusts := len(c.CertificateAuthority) > 0 || join.DiscoveryFile != ""
	switch {
	case !join.Discovers():
		need(!trusts, "certificateAuthority", "give the cluster's CA certificate, or a token to find it by (spec.join.token)")
	case !trusts && len(join.CACertHashes) == 0 && !join.UnsafeSkipCAVerification:
		need(true, "certificateAuthority", "give the cluster's CA certificate, or its hash in spec.join.caCertHashes so that what is found by the token can be trusted")
	}
	_, dns := s.Kubelet.Config["clusterDNS"]
	need(c.CIDR == "" && !join.Discovers() && !dns, "cidr", "give the range of Services' addresses, or spec.kubelet.config.clusterDNS")
	need(c.EnableOutpost != nil && *c.EnableOutpost && c.ID == "", "id", "a cluster on an Outpost is known by its id")
	return problems
}

func (c Cluster) validate(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if c.APIServerEndpoint != "" {
		endpoint, err := url.Parse(c.APIServerEndpoint)
		if err != nil || endpoint.Scheme != "https" || endpoint.Hostname() == "" || endpoint.User != nil || endpoint.RawQuery != "" || endpoint.Fragment != "" {
			problems = append(problems, field.Invalid(path.Child("apiServerEndpoint"), WithoutSecrets(c.APIServerEndpoint), "must be a URL like https://192.168.64.2:443"))
		}
	}
	if len(c.CertificateAuthority) > 0 {
		if err := validateAuthorities(c.CertificateAuthority); err != nil {
			problems = append(problems, field.Invalid(path.Child("certificateAuthority"), hidden, err.Error()))
		}
	}
	if service, err := validatePrefix(path.Child("cidr"), c.CIDR); err != nil {
		problems = append(problems, err)
	} else if service.IsValid() {
		if _, err := ClusterDNS(service); err != nil {
			problems = append(problems, field.Invalid(path.Child("cidr"), c.CIDR, err.Error()))
		}
	}
	if _, err := validatePrefix(path.Child("podCIDR"), c.PodCIDR); err != nil {
		problems = append(problems, err)
	}
	if c.Domain != "" {
		for _, message := range validation.IsDNS1123Subdomain(c.Domain) {
			problems = append(problems, field.Invalid(path.Child("domain"), c.Domain, message))
		}
	}
	return problems
}

func validatePrefix(path *field.Path, text string) (netip.Prefix, *field.Error) {
	if text == "" {
		return netip.Prefix{}, nil
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, field.Invalid(path, text, "must be a range of addresses like 10.100.0.0/16")
	case prefix.Masked() != prefix:
		return netip.Prefix{}, field.Invalid(path, text, fmt.Sprintf("is an address within a range; the range is %s", prefix.Masked()))
	}
	return prefix, nil
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
