// SPDX-License-Identifier: Apache-2.0

package webidentity

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"muster.dev/muster/internal/iam/tokenrefusal"
)

const (
	// MaxSize is how long a token may be, in bytes: what STS takes.
	MaxSize = 20_000
	// maxText is how long the texts of a token may be that are compared or shown.
	maxText = 1024
	// maxAudiences is how many audiences a token may be for.
	maxAudiences = 100
	// maxSeconds is the end of the year 9999.
	maxSeconds = 253402300799
)

// Algorithms of signatures.
const (
	RS256 = "RS256"
	ES256 = "ES256"
)

// Token is a token that has the right form. Nothing in it is proven until Verify.
type Token struct {
	algorithm, keyID string
	claims           Claims
	signed           []byte // header and claims, as they came
	signature        []byte
}

// String keeps the token out of what is printed.
func (t Token) String() string { return "token of " + tokenrefusal.Quote(t.claims.Issuer) }

// GoString keeps the token out of what is printed.
func (t Token) GoString() string { return t.String() }

// Issuer is the claim iss: whose keys to ask. It is not proven.
func (t Token) Issuer() string { return t.claims.Issuer }

// KeyID is the kid of the header. It is not proven.
func (t Token) KeyID() string { return t.keyID }

// header is what is read of a token's header. Others are ignored, as RFC 7515 has it, but for crit.
type header struct {
	Algorithm string          `json:"alg"`
	KeyID     *string         `json:"kid"`
	Critical  json.RawMessage `json:"crit"`
}

// Read takes a token apart. Errors are *tokenrefusal.Refusal.
func Read(text string) (Token, error) {
	if len(text) > MaxSize {
		return Token{}, tokenrefusal.New(RuleSize, "more than 20000 bytes", "send the token alone")
	}
	var parts [3][]byte
	fields := strings.Split(text, ".")
	if len(fields) != len(parts) {
		return Token{}, tokenrefusal.New(RuleForm, "", "send a JSON Web Token in compact form: three parts with dots between them")
	}
	for i, field := range fields {
		// The decoder would skip line breaks: a token has one spelling.
		raw, err := base64.RawURLEncoding.Strict().DecodeString(field)
		if err != nil || len(raw) == 0 || strings.ContainsAny(field, "\r\n") {
			return Token{}, tokenrefusal.New(RuleForm, "", "send the token unchanged: each part is base64 for URLs, without padding or line breaks")
		}
		parts[i] = raw
	}
	t := Token{signed: []byte(text[:len(fields[0])+1+len(fields[1])]), signature: parts[2]}
	if err := t.readHeader(parts[0]); err != nil {
		return Token{}, err
	}
	var err error
	if t.claims, err = readClaims(parts[1]); err != nil {
		return Token{}, err
	}
	return t, nil
}

func (t *Token) readHeader(raw []byte) error {
	var h header
	if err := strict(raw, &h); err != nil {
		return tokenrefusal.New(RuleHeader, tokenrefusal.Quote(err.Error()), "the header must be one JSON object, each key once")
	}
	switch {
	case h.Critical != nil:
		return tokenrefusal.New(RuleHeader, "crit", "leave it out: no extension of tokens is known here")
	case h.Algorithm != RS256 && h.Algorithm != ES256:
		return tokenrefusal.New(RuleAlgorithm, tokenrefusal.Quote(h.Algorithm), "sign tokens with RS256 or ES256")
	case h.KeyID == nil || *h.KeyID == "" || len(*h.KeyID) > maxText:
		return tokenrefusal.New(RuleKeyID, "", "the header must name the key by its kid, in at most 1024 bytes")
	}
	t.algorithm, t.keyID = h.Algorithm, *h.KeyID
	return nil
}

// strict reads a JSON object whose keys are each there once and in the capitals that are expected. Keys that are not
// known are ignored.
func strict(raw []byte, into any) error {
	if !utf8.Valid(raw) {
		return errors.New("bytes that are not UTF-8")
	}
	if trimmed := bytes.TrimLeft(raw, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("something that is not an object")
	}
	twice, err := kjson.UnmarshalStrict(raw, into, kjson.DisallowDuplicateFields)
	if err == nil && len(twice) > 0 {
		err = twice[0]
	}
	return err
}

// seconds are a time in JSON: seconds since 1970, perhaps with a fraction (NumericDate of RFC 7519).
type seconds struct{ time.Time }

// UnmarshalJSON reads a number.
func (s *seconds) UnmarshalJSON(raw []byte) error {
	var n float64
	if string(raw) == "null" {
		return errors.New("a time must be a number of seconds")
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		return errors.New("a time must be a number of seconds")
	}
	if n < 0 || n > maxSeconds {
		return errors.New("a time must be between 1970 and 9999")
	}
	whole, fraction := math.Modf(n)
	s.Time = time.Unix(int64(whole), int64(fraction*float64(time.Second))).UTC()
	return nil
}
