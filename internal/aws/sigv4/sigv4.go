// SPDX-License-Identifier: Apache-2.0

package sigv4

import (
	"fmt"
	"io"
	"log/slog"
	"time"
)

// EmptyPayload is the PayloadHash of a request without a body.
const EmptyPayload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// Credential is what a request says it is signed with.
type Credential struct {
	AccessKeyID string
	Scope
}

// String is the credential as it is sent: AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request.
func (c Credential) String() string { return c.AccessKeyID + "/" + c.Scope.String() }

// Request is the part of an HTTP request that a signature covers.
type Request struct {
	Method string
	Host   string // as in the Host header, with the port if it has one
	Path   string // as sent, so with its escapes: url.URL.EscapedPath
	// RawQuery is the query as sent, without the question mark.
	RawQuery string
	// Header has the names in any case. Host is not looked for in it.
	Header map[string][]string
	// PayloadHash is the SHA-256 of the body that arrived, as 64 hex digits in lower case. Never what a header claims.
	PayloadHash string
}

// Signed is a signature that was read and not yet verified: nothing in it is proven. fmt, slog and JSON show the
// credential only.
type Signed struct {
	Credential
	Headers      []string // names of the signed headers in lower case, sorted, host among them
	SignedAt     time.Time
	Presigned    bool          // in the query, else in the Authorization header
	Expires      time.Duration // of a presigned request
	SessionToken string        // a secret
	signature    [32]byte
}

// Format hides the session token and the signature from every verb of fmt.
func (s Signed) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue hides them from logs.
func (s Signed) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON hides them from JSON.
func (s Signed) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", s.String()), nil }

// Current reports whether the signature is neither too old nor from the future. A signature in the header is good for
// skew in both directions. A presigned signature is good until its Expires, or for skew if that is longer, as at STS:
// the tools sign GetCallerIdentity for 60 s and count on 15 minutes. Errors are *Refusal.
func (s Signed) Current(now time.Time, skew time.Duration) error {
	saw := func() string {
		return "signed at " + s.SignedAt.UTC().Format(dateLayout) + ", and it is " + now.UTC().Format(dateLayout)
	}
	if s.SignedAt.Sub(now) > skew {
		return mismatch(RuleEarly, saw(), "set the clock of the signing machine: at most "+skew.String()+" ahead is accepted")
	}
	if good := max(skew, s.Expires); now.Sub(s.SignedAt) > good {
		return mismatch(RuleExpired, saw(),
			"sign again, or set the clock of the signing machine: a signature like this is good for "+good.String())
	}
	return nil
}
