// SPDX-License-Identifier: Apache-2.0

package iam

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"muster.dev/muster/internal/aws/arn"
)

// Limits of OpenID Connect providers, from "IAM and AWS STS quotas" and the API reference.
const (
	MaxProviderURL = 255
	MaxClientIDs   = 100
	MaxClientID    = 255
	MaxThumbprints = 5
	// thumbprintDigits is the length of a SHA-1 sum in hexadecimal digits.
	thumbprintDigits = 40
)

// OIDCProvider is an OpenID Connect provider of an account.
type OIDCProvider struct {
	Account     string
	URL         string // host and path, as ProviderURL returns them
	ClientIDs   []string
	Thumbprints []string
	Created     time.Time
	Tags        []Tag
}

// ARN names the provider.
func (p OIDCProvider) ARN() arn.ARN { return global("iam", p.Account, "oidc-provider/"+p.URL) }

// ProviderURL reads the URL of a provider and returns its host and path, which ARNs and the keys of trust policies
// have.
func ProviderURL(s string) (string, error) {
	invalid := func(rule string) (string, error) { return "", &Invalid{"Url", quoted(s), rule} }
	if s == "" || len(s) > MaxProviderURL {
		return invalid(fmt.Sprintf("it must have 1 to %d characters", MaxProviderURL))
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return invalid("it must be an issuer's URL such as https://oidc.example.com/id/1")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return invalid("it must have neither user, query nor fragment")
	case strings.HasSuffix(u.Host, ":") || u.Port() != "" && u.Port() != "443":
		return invalid("it must have no port: IAM takes issuers on port 443 alone")
	case strings.Trim(u.Hostname(), hostLetters) != "":
		return invalid("its host must consist of letters, digits, hyphens and dots")
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	// The path is a part of the ARN, where * and ? would be patterns.
	if strings.Trim(path, hostLetters+"_~%/") != "" || strings.Contains(path, "//") {
		return invalid("its path must consist of letters, digits and - . _ ~ / without an empty part")
	}
	return strings.ToLower(u.Hostname()) + path, nil
}

const hostLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"

// CheckClientIDs checks the client ids of a provider, also called audiences.
func CheckClientIDs(ids []string) error {
	if len(ids) > MaxClientIDs {
		return &Limit{"client ids of an OpenID Connect provider", MaxClientIDs, "remove one first"}
	}
	for i, id := range ids {
		if n := utf8.RuneCountInString(id); n < 1 || n > MaxClientID || !utf8.ValidString(id) {
			return &Invalid{fmt.Sprintf("ClientIDList.member.%d", i+1), quoted(id), fmt.Sprintf("it must have 1 to %d characters", MaxClientID)}
		}
	}
	return nil
}

// CheckThumbprints checks the thumbprints of a provider.
func CheckThumbprints(thumbprints []string) error {
	for i, t := range thumbprints {
		if len(t) != thumbprintDigits || strings.Trim(t, "0123456789abcdefABCDEF") != "" {
			return &Invalid{fmt.Sprintf("ThumbprintList.member.%d", i+1), quoted(t), "it must be a SHA-1 sum: 40 hexadecimal digits"}
		}
	}
	return nil
}

// WithClientID returns the provider with one more client id. An id that it already has is not added again.
func (p OIDCProvider) WithClientID(id string) OIDCProvider {
	if !slices.Contains(p.ClientIDs, id) {
		p.ClientIDs = append(slices.Clone(p.ClientIDs), id)
	}
	return p
}

// WithoutClientID returns the provider without a client id.
func (p OIDCProvider) WithoutClientID(id string) OIDCProvider {
	p.ClientIDs = slices.DeleteFunc(slices.Clone(p.ClientIDs), func(has string) bool { return has == id })
	return p
}
