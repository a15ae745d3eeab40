// SPDX-License-Identifier: Apache-2.0

package ststoken

import (
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/iam/tokenrefusal"
)

const dateLayout = "20060102T150405Z"

// maxExpires of X-Amz-Expires, which is what aws-iam-authenticator allows.
const maxExpires = 15 * time.Minute

// Parse checks a token up to the point where the key is needed. clusterID is the cluster's own. Errors are
// *tokenrefusal.Refusal.
func Parse(raw, clusterID string, hosts Hosts, now time.Time) (Token, error) {
	if clusterID == "" {
		return Token{}, tokenrefusal.New(RuleCluster, "none", "configure the id of this cluster: without one a token for any cluster would pass")
	}
	text, refusal := decode(raw)
	if refusal != nil {
		return Token{}, refusal
	}
	t, refusal := split(text, hosts)
	if refusal != nil {
		return Token{}, refusal
	}
	return t.read(clusterID, now)
}

// Read is Parse for the presigned request in a token that somebody else has parsed: nothing of what he found is taken
// for granted, but which hosts tokens may be made for is his to say. The query is that of the request, byte by byte.
func Read(host, query, clusterID string, now time.Time) (Token, error) {
	switch {
	case clusterID == "":
		return Token{}, tokenrefusal.New(RuleCluster, "none", "say for which cluster: without one a token for any cluster would pass")
	case len(host)+len(query) > MaxSize:
		return Token{}, tokenrefusal.New(RuleSize, "more than 4096 bytes", "make a new token; if it is always so long, the session's tags and policies are too large")
	}
	return Token{Scheme: "https", Host: host, Query: query}.read(clusterID, now)
}

// read checks the parts of a request that was taken apart.
func (t Token) read(clusterID string, now time.Time) (Token, error) {
	if refusal := checkParameters(t.Query); refusal != nil {
		return Token{}, refusal
	}
	s, err := sigv4.ReadPresigned(t.Request(clusterID))
	if err != nil {
		return Token{}, fromSigv4(err)
	}
	if refusal := checkSigned(s, t.Region, now); refusal != nil {
		return Token{}, refusal
	}
	t.Signed, t.Region, t.Expires = s, s.Region, s.SignedAt.Add(Lifetime)
	return t, nil
}

func decode(raw string) (string, *tokenrefusal.Refusal) {
	if len(raw) > MaxSize {
		return "", tokenrefusal.New(RuleSize, "more than 4096 bytes", "make a new token; if it is always so long, the session's tags and policies are too large")
	}
	encoded, ok := strings.CutPrefix(raw, Prefix)
	if !ok {
		return "", tokenrefusal.New(RulePrefix, "", "a token of aws eks get-token begins with "+Prefix)
	}
	var stack [MaxSize / 4 * 3]byte // it does not move to the heap
	// The decoder would skip line breaks, and take any value of the last unused bits: a token has one spelling.
	n, err := base64.RawURLEncoding.Strict().Decode(stack[:], []byte(encoded))
	if err != nil || strings.IndexByte(encoded, '\r') >= 0 || strings.IndexByte(encoded, '\n') >= 0 {
		return "", tokenrefusal.New(RuleEncoding, "",
			"send the token unchanged: after "+Prefix+" comes base64 for URLs, without padding or line breaks")
	}
	for _, c := range stack[:n] {
		if c <= ' ' || c >= 0x7f || c == '#' {
			return "", tokenrefusal.New(RuleURL, "", "make the token of a presigned URL, which has visible ASCII characters only and no fragment")
		}
	}
	return string(stack[:n]), nil
}

// split takes the URL apart. Nothing is cleaned up: a token that is not spelled as by SDKs is refused.
func split(text string, hosts Hosts) (Token, *tokenrefusal.Refusal) {
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case !ok:
		return Token{}, tokenrefusal.New(RuleURL, "", "make the token of a presigned URL, https://HOST/?...")
	case scheme != "https" && scheme != "http":
		return Token{}, tokenrefusal.New(RuleScheme, tokenrefusal.Quote(scheme), "presign the https URL of STS")
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	host := signedHost(scheme, rest[:end])
	region, ok := hosts.Find(scheme, host)
	switch {
	case !ok && scheme == "http":
		return Token{}, tokenrefusal.New(RuleScheme, tokenrefusal.Quote(scheme),
			"presign the https URL of STS; only an endpoint that is configured with http:// in front may have it")
	case !ok:
		return Token{}, tokenrefusal.New(RuleHost, tokenrefusal.Quote(rest[:end]), hosts.fix())
	}
	if host != rest[:end] {
		if _, configured := hosts.endpoints[endpoint{scheme, host}]; !configured {
			return Token{}, tokenrefusal.New(RuleHost, tokenrefusal.Quote(rest[:end]), "leave the port out")
		}
	}
	path, query, _ := strings.Cut(rest[end:], "?")
	if path != "/" {
		return Token{}, tokenrefusal.New(RulePath, tokenrefusal.Quote(path), "presign the path / of STS")
	}
	return Token{Scheme: scheme, Host: host, Region: region, Query: query}, nil
}

func checkSigned(s sigv4.Signed, region string, now time.Time) *tokenrefusal.Refusal {
	dates := func() string {
		return "date " + s.SignedAt.Format(dateLayout) + ", and it is " + now.UTC().Format(dateLayout)
	}
	switch {
	// No other header can be there when the request is repeated: the token does not have its value.
	case len(s.Headers) != 2 || s.Headers[0] != "host" || s.Headers[1] != "x-k8s-aws-id":
		return tokenrefusal.New(RuleSignedHeaders, tokenrefusal.Quote(strings.Join(s.Headers, ";")),
			"sign exactly host;x-k8s-aws-id, with the name of the cluster in x-k8s-aws-id")
	case s.Expires > maxExpires:
		return tokenrefusal.New(RuleExpires, s.Expires.String(), "presign with X-Amz-Expires from 0 to 900")
	case s.Service != "sts":
		return tokenrefusal.New(RuleService, tokenrefusal.Quote(s.Service), "sign for service sts")
	case region != "" && s.Region != region:
		return tokenrefusal.New(RuleRegion, tokenrefusal.Quote(s.Region), "sign for region "+region+", which is that of the host")
	case s.SignedAt.Sub(now) > MaxAhead:
		return tokenrefusal.New(RuleEarly, dates(), "set the clock of the machine that made the token: at most "+MaxAhead.String()+" ahead is accepted")
	case now.Sub(s.SignedAt) >= Lifetime:
		return tokenrefusal.New(RuleExpired, dates(),
			"make a new token, or set the clock of the machine that made it: a token is good for "+Lifetime.String())
	}
	return nil
}

// fromSigv4 says as a refusal of a token what package sigv4 says of a request.
func fromSigv4(err error) *tokenrefusal.Refusal {
	var r *sigv4.Refusal
	if !errors.As(err, &r) {
		return tokenrefusal.New(RuleSignature, "", "make a new token")
	}
	rule := RuleSignature
	switch r.Rule {
	case sigv4.RuleSignedHeaders:
		rule = RuleSignedHeaders
	case sigv4.RuleExpires:
		rule = RuleExpires
	}
	saw := r.Rule
	if r.Saw != "" {
		saw += " " + r.Saw
	}
	return tokenrefusal.New(rule, saw, r.Fix)
}
