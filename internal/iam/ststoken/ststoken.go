// SPDX-License-Identifier: Apache-2.0

// Package ststoken reads the tokens that the AWS CLI and aws-iam-authenticator make: a presigned GetCallerIdentity in
// base64. It checks all that aws-iam-authenticator checks (pkg/token/token.go, Verify) and more: one spelling of each
// parameter, a signature that is whole, its service and region, and a date that is not in the future.
package ststoken

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"time"

	"muster.dev/muster/internal/aws/sigv4"
)

const (
	// Prefix is what a token begins with.
	Prefix = "k8s-aws-v1."
	// MaxSize is how long a token may be, in bytes, with its prefix.
	MaxSize = 4096
	// ClusterHeader is the signed header that binds a token to one cluster.
	ClusterHeader = "X-K8s-Aws-Id"
	// Lifetime is how long after its date a token is accepted, whatever its X-Amz-Expires says, as at STS.
	Lifetime = 15 * time.Minute
	// MaxAhead is how far in the future the date of a token may be.
	MaxAhead = 5 * time.Minute
)

// Token is a token that has the right form. Nothing in it is proven until Signed is verified. fmt, slog and JSON show
// its host and credential only.
type Token struct {
	Scheme  string // https, or http for an endpoint configured so
	Host    string // of STS as it was signed: with the port if it is not the scheme's own
	Region  string // of the credential's scope, which fits the host
	Query   string // as signed; a secret, for its holder can be the caller until Expires
	Signed  sigv4.Signed
	Expires time.Time
}

// URL is the presigned request, to send to STS with the cluster's id in ClusterHeader. It is a secret.
func (t Token) URL() string { return t.Scheme + "://" + t.Host + "/?" + t.Query }

// Request is what was signed if the token was made for that cluster.
func (t Token) Request(clusterID string) sigv4.Request {
	return sigv4.Request{
		Method: "GET", Host: t.Host, Path: "/", RawQuery: t.Query,
		Header:      map[string][]string{ClusterHeader: {clusterID}},
		PayloadHash: sigv4.EmptyPayload,
	}
}

// Verify reports whether the holder of the key made the token for that cluster. Errors are *sigv4.Refusal.
func (t Token) Verify(key sigv4.Key, clusterID string) error {
	return t.Signed.Verify(key, t.Request(clusterID))
}

// Encode makes a token of a presigned URL.
func Encode(presignedURL string) string {
	return Prefix + base64.RawURLEncoding.EncodeToString([]byte(presignedURL))
}

// String is the token without its secrets.
func (t Token) String() string { return "token for " + t.Host + " of " + t.Signed.String() }

// Format hides the secrets from every verb of fmt.
func (t Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue hides the secrets from logs.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalJSON hides the secrets from JSON.
func (t Token) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", t.String()), nil }
