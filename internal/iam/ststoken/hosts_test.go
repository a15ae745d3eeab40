// SPDX-License-Identifier: Apache-2.0

package ststoken_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/ststoken"
)

func TestHostsOfPartitions(t *testing.T) {
	for _, c := range []struct{ partition, host, region string }{ // region "" for refused
		{"aws", "sts.amazonaws.com", "us-east-1"},
		{"aws", "sts.us-east-1.amazonaws.com", "us-east-1"},
		{"aws", "sts.eu-north-1.amazonaws.com", "eu-north-1"},
		{"aws", "sts.ap-southeast-7.amazonaws.com", "ap-southeast-7"},
		{"aws", "sts.mx-central-1.amazonaws.com", "mx-central-1"},
		{"aws", "sts.us-future-99.amazonaws.com", "us-future-99"},
		{"aws", "sts-fips.us-west-2.amazonaws.com", "us-west-2"},
		{"aws", "sts.eu-west-1.api.aws", "eu-west-1"},
		{"aws", "sts-fips.us-east-2.api.aws", "us-east-2"},
		{"aws", "sts.default-region.amazonaws.com", "default-region"}, // a further region
		{"aws", "sts.not-a-region.amazonaws.com", ""},
		{"aws", "sts.us-gov-east-1.amazonaws.com", ""},
		{"aws", "sts.amazonaws.com.cn", ""},
		{"aws", "sts.cn-north-1.amazonaws.com.cn", ""},
		{"aws", "sts.us-east-1.amazonaws.com.evil.example", ""},
		{"aws", "sts.evil.us-east-1.amazonaws.com", ""},
		{"aws", "sts.us-east-1.evil.amazonaws.com", ""},
		{"aws", "evil-sts.us-east-1.amazonaws.com", ""},
		{"aws", "sts-fips.amazonaws.com", ""},
		{"aws", "sts.us-east-.amazonaws.com", ""},
		{"aws", "sts.us--1.amazonaws.com", ""},
		{"aws", "sts.us-east-1a.amazonaws.com", ""},
		{"aws", "sts.us-East-1.amazonaws.com", ""},
		{"aws", "sts.useast-1.amazonaws.com", ""},
		{"aws", "sts.us-" + strings.Repeat("x", 60) + "-1.amazonaws.com", ""},
		{"aws", "sts..amazonaws.com", ""},
		{"aws", "s3.us-east-1.amazonaws.com", ""},
		{"aws", "", ""},
		{"aws-cn", "sts.cn-northwest-1.amazonaws.com.cn", "cn-northwest-1"},
		{"aws-cn", "sts-fips.cn-north-1.api.amazonwebservices.com.cn", "cn-north-1"},
		{"aws-cn", "sts.us-iso-east-1.c2s.ic.gov", ""},
		{"aws-cn", "sts.amazonaws.com", ""},
		{"aws-us-gov", "sts.us-gov-east-1.amazonaws.com", "us-gov-east-1"},
		{"aws-us-gov", "sts.us-gov-west-1.api.aws", "us-gov-west-1"},
		{"aws-us-gov", "sts.us-east-1.amazonaws.com", ""},
		{"aws-us-gov", "sts.amazonaws.com", ""},
		{"aws-eusc", "sts.eusc-de-east-1.amazonaws.eu", "eusc-de-east-1"},
		{"aws-eusc", "sts.eusc-de-east-1.api.amazonwebservices.eu", "eusc-de-east-1"},
		{"aws-iso", "sts.us-iso-east-1.c2s.ic.gov", "us-iso-east-1"},
		{"aws-iso", "sts.us-isob-east-1.c2s.ic.gov", ""},
		{"aws-iso-b", "sts.us-isob-east-1.sc2s.sgov.gov", "us-isob-east-1"},
		{"aws-iso-b", "sts.cn-north-1.amazonaws.com.cn", ""},
		{"aws-iso-e", "sts.eu-isoe-west-1.cloud.adc-e.uk", "eu-isoe-west-1"},
		{"aws-iso-f", "sts.us-isof-south-1.csp.hci.ic.gov", "us-isof-south-1"},
	} {
		h, err := ststoken.NewHosts(c.partition, []string{"default-region"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if region, ok := h.Find("https", c.host); region != c.region || ok != (c.region != "") {
			t.Errorf("%s in partition %s: %q, %t, want %q", c.host, c.partition, region, ok, c.region)
		}
		if region, ok := h.Find("http", c.host); ok || region != "" {
			t.Errorf("%s has http, too", c.host)
		}
	}
}

func TestHostsConfigured(t *testing.T) {
	for _, c := range []struct {
		name, partition, region, endpoint, says string // nothing to say: accepted
	}{
		{"a host", "aws", "eu-west-1", "sts.internal", ""},
		{"a port", "aws", "eu-west-1", "sts.internal:8443=local-1", ""},
		{"an address", "aws", "eu-west-1", "http://[fd00::1]:80=local-1", ""},
		{"an unknown partition", "aws-mars", "eu-west-1", "sts.internal", `partition "aws-mars" is unknown; use aws, aws-cn`},
		{"no partition", "", "eu-west-1", "sts.internal", "is unknown"},
		{"a region in upper case", "aws", "EU", "sts.internal", `region "EU": use lower-case letters`},
		{"no region", "aws", "", "sts.internal", `region ""`},
		{"an empty endpoint", "aws", "eu-west-1", "", "give the host"},
		{"a path", "aws", "eu-west-1", "https://sts.internal/", "without user, path or query"},
		{"a user", "aws", "eu-west-1", "https://me@sts.internal", "without user"},
		{"a query", "aws", "eu-west-1", "https://sts.internal?x", "without user"},
		{"a fragment", "aws", "eu-west-1", "https://sts.internal#x", "without user"},
		{"upper case", "aws", "eu-west-1", "STS.internal", "in lower case"},
		{"a colon without a port", "aws", "eu-west-1", "sts.internal:", "in lower case"},
		{"a port that is none", "aws", "eu-west-1", "sts.internal:https", "it is not HOST"},
		{"another scheme", "aws", "eu-west-1", "ftp://sts.internal", `scheme "ftp": use https`},
		{"an empty region behind the endpoint", "aws", "eu-west-1", "sts.internal=", `region ""`},
		{"a space", "aws", "eu-west-1", "sts. internal", "it is not HOST"},
		{"two regions for one", "aws", "eu-west-1", "twice.example=eu-west-1", "it is there twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ststoken.NewHosts(c.partition, []string{c.region}, []string{"twice.example", "twice.example", c.endpoint})
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	h, err := ststoken.NewHosts("aws", nil, []string{"sts.internal=local-1", "http://sts.internal:8080"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scheme, host, region string
		ok                   bool
	}{
		{"https", "sts.internal", "local-1", true},
		{"http", "sts.internal", "", false},
		{"http", "sts.internal:8080", "", true},
		{"https", "sts.internal:8080", "", false},
		{"https", "sts.internal:8443", "", false},
		{"", "sts.internal", "", false},
	} {
		if region, ok := h.Find(c.scheme, c.host); region != c.region || ok != c.ok {
			t.Errorf("%s://%s: %q, %t", c.scheme, c.host, region, ok)
		}
	}
}

// An STS that is not AWS's numbers its accounts as it likes, and the owner of the account of that number at AWS is
// somebody else.
func TestOnlyTheHostsConfigured(t *testing.T) {
	h, err := ststoken.NewHosts("aws", []string{"default-region"}, []string{"sts.internal:8443=local-1"})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"sts.internal:8443": "local-1", "sts.amazonaws.com": "", "sts.eu-west-1.amazonaws.com": "", "sts-fips.us-east-1.api.aws": "",
		"sts.default-region.amazonaws.com": "", "sts.": "", "sts..": "", "": "",
	} {
		if region, ok := h.Only().Find("https", host); region != want || ok != (want != "") {
			t.Errorf("%q: %q, %t, want %q", host, region, ok, want)
		}
	}
	if _, ok := h.Find("https", "sts.eu-west-1.amazonaws.com"); !ok {
		t.Error("AWS's hosts are gone from the others, too")
	}
	_, err = ststoken.Parse(ststoken.Encode("https://sts.amazonaws.com/?Action=GetCallerIdentity"), "demo", h.Only(), time.Now())
	if err == nil || !strings.Contains(err.Error(), "AWS's are not accepted here") {
		t.Errorf("a token for AWS: %v", err)
	}
	if _, ok := (ststoken.Hosts{}).Only().Find("https", ""); ok {
		t.Error("no hosts are some")
	}
}
