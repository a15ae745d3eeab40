// SPDX-License-Identifier: Apache-2.0

package token

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

const (
	idLength     = 6
	secretLength = 16
	alphabet     = "abcdefghijklmnopqrstuvwxyz0123456789"
)

// Token is a bootstrap token, "abcdef.0123456789abcdef". Its second half is a secret: no way of printing a Token shows
// it, only Reveal does.
type Token struct {
	// ID is the public half: it names the Secret and the user (system:bootstrap:<ID>).
	ID     string
	secret string
}

// Generate draws a token: 31 and 82 bits of randomness.
func Generate(random io.Reader) (Token, error) {
	text, err := draw(random, idLength+secretLength)
	if err != nil {
		return Token{}, fmt.Errorf("drawing a bootstrap token: %w", err)
	}
	return Token{ID: text[:idLength], secret: text[idLength:]}, nil
}

// draw returns n characters, all equally likely: bytes that would favour the first ones are thrown away.
func draw(random io.Reader, n int) (string, error) {
	const fair = 256 - 256%len(alphabet)
	out := make([]byte, 0, n)
	buffer := make([]byte, 2*n)
	for len(out) < n {
		if _, err := io.ReadFull(random, buffer); err != nil {
			return "", err
		}
		for _, b := range buffer {
			if int(b) < fair && len(out) < n {
				out = append(out, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(out), nil
}

// ErrFormat means that a text is not a bootstrap token. It never quotes the text, which may be a secret with a typing
// error.
var ErrFormat = errors.New("not a bootstrap token: it must be 6, a dot and 16 of a-z and 0-9, as abcdef.0123456789abcdef")

// Parse reads a token.
func Parse(text string) (Token, error) {
	id, secret, ok := strings.Cut(text, ".")
	if !ok || !wellFormed(id, idLength) || !wellFormed(secret, secretLength) {
		return Token{}, ErrFormat
	}
	return Token{ID: id, secret: secret}, nil
}

func wellFormed(s string, length int) bool {
	return len(s) == length && strings.Trim(s, alphabet) == ""
}

// Reveal returns the whole token, for the one place it belongs: the bootstrap kubeconfig of its machine.
func (t Token) Reveal() string { return t.ID + "." + t.secret }

// IsZero reports whether there is no token.
func (t Token) IsZero() bool { return t == Token{} }

// String shows the public half.
func (t Token) String() string { return t.ID + ".<redacted>" }

// Format keeps every verb of fmt, %#v and %x included, from the secret half.
func (t Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue keeps it from logs.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText keeps it from JSON and YAML.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
