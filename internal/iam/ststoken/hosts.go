// SPDX-License-Identifier: Apache-2.0

package ststoken

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Hosts are the STS endpoints that tokens may be made for. The zero Hosts are none.
type Hosts struct {
	partition string
	domains   []string // behind REGION.
	regions   []string // how the names of regions begin
	further   []string // whole names of regions
	global    string   // host without region
	endpoints map[endpoint]string
}

type endpoint struct{ scheme, host string }

// globalRegion is what requests to the global endpoint are signed for.
const globalRegion = "us-east-1"

// partitionHosts are the domains of STS and the beginnings of the names of regions, from the endpoint metadata of
// aws-sdk-go-v2 (service/sts/internal/endpoints), where a region is BEGINNING-WORD-NUMBER. The domains are the plain
// and the dualstack one.
func partitionHosts(partition string) (Hosts, bool) {
	h := Hosts{partition: partition}
	switch partition {
	case "aws":
		h.domains, h.global = []string{"amazonaws.com", "api.aws"}, "sts.amazonaws.com"
		h.regions = []string{"us", "eu", "ap", "sa", "ca", "me", "af", "il", "mx"}
	case "aws-cn":
		h.domains, h.regions = []string{"amazonaws.com.cn", "api.amazonwebservices.com.cn"}, []string{"cn"}
	case "aws-us-gov":
		h.domains, h.regions = []string{"amazonaws.com", "api.aws"}, []string{"us-gov"}
	case "aws-eusc":
		h.domains, h.regions = []string{"amazonaws.eu", "api.amazonwebservices.eu"}, []string{"eusc-de"}
	case "aws-iso":
		h.domains, h.regions = []string{"c2s.ic.gov", "api.aws.ic.gov"}, []string{"us-iso"}
	case "aws-iso-b":
		h.domains, h.regions = []string{"sc2s.sgov.gov", "api.aws.scloud"}, []string{"us-isob"}
	case "aws-iso-e":
		h.domains, h.regions = []string{"cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"}, []string{"eu-isoe"}
	case "aws-iso-f":
		h.domains, h.regions = []string{"csp.hci.ic.gov", "api.aws.hci.ic.gov"}, []string{"us-isof"}
	default:
		return Hosts{}, false
	}
	return h, true
}

// NewHosts are all STS hosts of a partition (plain, FIPS and dualstack, of every region that its pattern allows and of
// the further regions given), and the endpoints given: HOST, HOST:PORT, with http:// or https:// in front, and =REGION
// behind if tokens for it must be signed for that region: https://sts.example.internal:8443=eu-west-1.
func NewHosts(partition string, regions, endpoints []string) (Hosts, error) {
	h, ok := partitionHosts(partition)
	if !ok {
		return Hosts{}, fmt.Errorf("partition %q is unknown; use aws, aws-cn, aws-us-gov, aws-eusc, aws-iso, aws-iso-b, aws-iso-e or aws-iso-f",
			partition)
	}
	for _, region := range regions {
		if !isWord(region) {
			return Hosts{}, fmt.Errorf("region %q: use lower-case letters, digits and hyphens, as in eu-west-1", region)
		}
	}
	h.further = slices.Clone(regions)
	h.endpoints = map[endpoint]string{}
	for _, given := range endpoints {
		e, region, err := readEndpoint(given)
		if err != nil {
			return Hosts{}, fmt.Errorf("STS endpoint %q: %w", given, err)
		}
		if other, ok := h.endpoints[e]; ok && other != region {
			return Hosts{}, fmt.Errorf("STS endpoint %q: it is there twice, with regions %q and %q; keep one", given, other, region)
		}
		h.endpoints[e] = region
	}
	return h, nil
}

// Only are the endpoints that were given, without AWS's hosts. An STS that is not AWS's has accounts that AWS's may
// know as somebody else's.
func (h Hosts) Only() Hosts {
	return Hosts{partition: h.partition, endpoints: h.endpoints}
}

func readEndpoint(s string) (e endpoint, region string, err error) {
	s, region, ok := strings.Cut(s, "=")
	if ok && !isWord(region) {
		return e, "", fmt.Errorf("region %q: use lower-case letters, digits and hyphens, as in eu-west-1", region)
	}
	if !strings.Contains(s, "://") {
		s = "https://" + s
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return e, "", errors.New("it is not HOST, HOST:PORT or https://HOST:PORT")
	case u.Scheme != "https" && u.Scheme != "http":
		return e, "", fmt.Errorf("scheme %q: use https, or http if it must be", u.Scheme)
	case u.Hostname() == "", s != u.Scheme+"://"+u.Host, u.Host != strings.ToLower(u.Host), strings.HasSuffix(u.Host, ":"):
		return e, "", errors.New("give the host in lower case and the port only, without user, path or query")
	}
	return endpoint{u.Scheme, signedHost(u.Scheme, u.Host)}, region, nil
}

// signedHost is the host without the port that the scheme implies: SDKs leave it out of the Host header that they sign.
func signedHost(scheme, host string) string {
	if scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// Find is the region of an STS endpoint, "" if it may be any. The host is without the port that the scheme implies.
func (h Hosts) Find(scheme, host string) (region string, ok bool) {
	if region, ok = h.endpoints[endpoint{scheme, host}]; ok || scheme != "https" || host == "" {
		return region, ok
	}
	if host == h.global {
		return globalRegion, true
	}
	rest, ok := strings.CutPrefix(host, "sts.")
	if !ok {
		if rest, ok = strings.CutPrefix(host, "sts-fips."); !ok {
			return "", false
		}
	}
	region, domain, _ := strings.Cut(rest, ".")
	if !slices.Contains(h.domains, domain) || !h.hasRegion(region) {
		return "", false
	}
	return region, true
}

// fix says how to replace a host that is not an accepted STS endpoint.
func (h Hosts) fix() string {
	if len(h.domains) == 0 {
		return "use an STS endpoint that is configured; AWS's are not accepted here"
	}
	return "use an STS endpoint of partition " + h.partition + ", or configure this one as a further endpoint"
}

func (h Hosts) hasRegion(region string) bool {
	for _, begins := range h.regions {
		rest, ok := strings.CutPrefix(region, begins)
		if !ok || rest == "" || rest[0] != '-' {
			continue
		}
		word, number, ok := strings.Cut(rest[1:], "-")
		if ok && len(region) <= 63 && word != "" && number != "" && all(word, isLowerAlnum) && all(number, isDigit) {
			return true
		}
	}
	return slices.Contains(h.further, region)
}

func isWord(s string) bool {
	return s != "" && len(s) <= 63 && all(s, func(c byte) bool { return isLowerAlnum(c) || c == '-' })
}

func isLowerAlnum(c byte) bool { return c >= 'a' && c <= 'z' || isDigit(c) }
func isDigit(c byte) bool      { return c >= '0' && c <= '9' }

func all(s string, is func(byte) bool) bool {
	for i := range len(s) {
		if !is(s[i]) {
			return false
		}
	}
	return true
}
