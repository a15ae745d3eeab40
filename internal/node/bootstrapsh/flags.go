// SPDX-License-Identifier: Apache-2.0

package bootstrapsh

import (
	"encoding/base64"
	"net/netip"
	"strings"
)

const (
	flagEndpoint   = "--apiserver-endpoint"
	flagCA         = "--b64-cluster-ca"
	flagDNS        = "--dns-cluster-ip"
	flagFamily     = "--ip-family"
	flagExtraArgs  = "--kubelet-extra-args"
	flagIPv4       = "--service-ipv4-cidr"
	flagIPv6       = "--service-ipv6-cidr"
	flagUseMaxPods = "--use-max-pods"
)

// conversion is what becomes of a flag.
type conversion struct {
	help string
	do   func(p *parser, flag, value string)
}

// conversions are all flags of the script.
func conversions() map[string]conversion {
	return map[string]conversion{
		flagEndpoint: {"URL of the API server", func(p *parser, flag, value string) {
			p.result.Spec.Cluster.APIServerEndpoint = value
			p.understood("%s: spec.cluster.apiServerEndpoint %s", flag, value)
		}},
		flagCA:        {"certificate authority, base64 of PEM", (*parser).authority},
		flagDNS:       {"addresses of the cluster's DNS, with commas", (*parser).dns},
		flagFamily:    {"ipv4 or ipv6", settled},
		flagIPv4:      {"range of Services' addresses", settled},
		flagIPv6:      {"range of Services' addresses", settled},
		flagExtraArgs: {"more arguments for the kubelet, in one word", (*parser).extraArgs},
		flagUseMaxPods: {"false: the kubelet's own limit of 110 pods instead of the formula's (default true)", func(p *parser, flag, value string) {
			if value != "true" && value != "false" {
				p.fail("%s must be true or false, not %q", flag, value)
			}
		}},
		"--cluster-id": {"id of the cluster", func(p *parser, flag, value string) {
			p.result.Spec.Cluster.ID = value
			p.understood("%s: spec.cluster.id %s", flag, value)
		}},
		"--container-runtime": {"containerd", func(p *parser, flag, value string) {
			if value != "containerd" {
				p.fail("%s %s: containerd is the only runtime since Kubernetes 1.24; leave it out", flag, value)
			}
		}},
		"--containerd-config-file": {"TOML that is merged over muster's configuration of containerd", func(p *parser, flag, value string) {
			p.result.ContainerdConfigFile = value
			p.understood("%s: spec.containerd.config from %s", flag, value)
		}},
		"--enable-local-outpost": {"false: local clusters of AWS Outposts are not known here", func(p *parser, flag, value string) {
			if value != "false" {
				p.fail("%s %s: muster does not know the local clusters of AWS Outposts; leave it out", flag, value)
			}
		}},
		"--local-disks": {"mount, raid0 or raid10", (*parser).localDisks},

		"--aws-api-retry-attempts":  {"", nothing("nothing is asked of AWS")},
		"--docker-config-json":      {"", nothing("there is no Docker")},
		"--enable-docker-bridge":    {"", nothing("there is no Docker")},
		"--mount-bpf-fs":            {"", nothing("muster mounts no bpffs; a program that needs one mounts it itself")},
		"--pause-container-account": {"", nothing("the image of pods' sandboxes is on the machine already")},
		"--pause-container-version": {"", nothing("the image of pods' sandboxes is on the machine already")},
	}
}

// fields are the flags that fields of a NodeConfig come from.
func fields() map[string]string {
	return map[string]string{
		"spec.cluster.apiServerEndpoint":    flagEndpoint,
		"spec.cluster.certificateAuthority": flagCA,
		"spec.cluster.cidr":                 flagIPv4 + " or " + flagIPv6,
		"spec.instance.localStorage":        "--local-disks",
		"spec.kubelet.config.clusterDNS":    flagDNS,
		"spec.kubelet.flags":                flagExtraArgs,
	}
}

// settled is what becomes of a flag that [parser.family] has looked at.
func settled(*parser, string, string) {}

// nothing is what becomes of a flag that has no meaning here.
func nothing(why string) func(*parser, string, string) {
	return func(p *parser, flag, _ string) { p.warn("%s does nothing here: %s", flag, why) }
}

func (p *parser) authority(flag, value string) {
	raw, err := base64.StdEncoding.DecodeString(value) // it skips line breaks
	if err != nil {
		p.fail("%s is not base64: %v", flag, err)
		return
	}
	p.result.Spec.Cluster.CertificateAuthority = raw
	p.understood("%s: spec.cluster.certificateAuthority", flag)
}

func (p *parser) dns(flag, value string) {
	var addresses []any
	for text := range strings.SplitSeq(value, ",") {
		if _, err := netip.ParseAddr(text); err != nil {
			p.fail("%s: %q is not an IP address; several are separated by commas, without blanks", flag, text)
			return
		}
		addresses = append(addresses, text)
	}
	p.configure("clusterDNS", addresses)
	p.understood("%s: spec.kubelet.config.clusterDNS %s", flag, value)
}

func (p *parser) localDisks(flag, value string) {
	strategy, ok := map[string]string{"mount": "Mount", "raid0": "RAID0", "raid10": "RAID10"}[value]
	if !ok {
		p.fail("%s must be mount, raid0 or raid10, not %q", flag, value)
		return
	}
	p.result.Spec.Instance.LocalStorage.Strategy = strategy
	p.understood("%s: spec.instance.localStorage.strategy %s", flag, strategy)
}

// configure sets a field of the kubelet's configuration.
func (p *parser) configure(name string, value any) {
	if p.result.Spec.Kubelet.Config == nil {
		p.result.Spec.Kubelet.Config = map[string]any{}
	}
	p.result.Spec.Kubelet.Config[name] = value
}

// family takes the range of Services' addresses. The cluster's DNS has the tenth address of the range. Amazon Linux 2
// wrote x.y.z.10 whatever the length of the range, and without any it guessed by the addresses of the VPC. The rules
// about which flags go together are its own.
func (p *parser) family() {
	family := strings.ToLower(p.given[flagFamily])
	ipv4, ipv6 := p.given[flagIPv4], p.given[flagIPv6]
	if ipv4 == "None" { // the AWS CLI's output for a range that there is not
		ipv4 = ""
	}
	switch {
	case family != "" && family != "ipv4" && family != "ipv6":
		p.fail("%s must be ipv4 or ipv6, not %q", flagFamily, p.given[flagFamily])
	case ipv6 != "" && family == "ipv4":
		p.fail("%s needs %s ipv6", flagIPv6, flagFamily)
	case family == "ipv6" && ipv6 == "" && p.given[flagDNS] == "":
		p.fail("%s ipv6 needs %s or %s", flagFamily, flagIPv6, flagDNS)
	case ipv6 != "":
		p.result.Spec.Cluster.CIDR = ipv6
		p.understood("%s: spec.cluster.cidr %s", flagIPv6, ipv6)
	case ipv4 != "" && family != "ipv6":
		p.result.Spec.Cluster.CIDR = ipv4
		p.understood("%s: spec.cluster.cidr %s", flagIPv4, ipv4)
	}
	for _, given := range []struct{ flag, kind, cidr string }{{flagIPv4, "IPv4", ipv4}, {flagIPv6, "IPv6", ipv6}} {
		prefix, err := netip.ParsePrefix(given.cidr)
		if given.cidr != "" && (err != nil || prefix.Addr().Is4() != (given.flag == flagIPv4)) {
			p.fail("%s must be a range of %s addresses, not %q", given.flag, given.kind, given.cidr)
		}
	}
}
