// SPDX-License-Identifier: Apache-2.0

package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
)

const (
	terminator = "aws4_request"
	hidden     = "(hidden)"
)

// Scope is what a derived key is good for.
type Scope struct {
	Date    string // 20060102
	Region  string
	Service string
}

// String is the scope as it is signed: 20150830/us-east-1/iam/aws4_request.
func (s Scope) String() string { return s.Date + "/" + s.Region + "/" + s.Service + "/" + terminator }

// Key is the signing key of a scope. Its holder can sign for that day, region and service, and cannot tell the secret.
// It stays out of logs and JSON.
type Key [32]byte

// Derive makes the signing key of a scope from a secret access key.
func Derive(secret string, s Scope) Key {
	key := []byte("AWS4" + secret)
	for _, part := range [...]string{s.Date, s.Region, s.Service, terminator} {
		mac := hmac.New(sha256.New, key)
		_, _ = io.WriteString(mac, part)
		key = mac.Sum(nil)
	}
	return Key(key)
}

// String hides the key.
func (Key) String() string { return hidden }

// Format hides the key from every verb of fmt.
func (Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// LogValue hides the key from logs.
func (Key) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalJSON hides the key; code that must send it sends key[:].
func (Key) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }
