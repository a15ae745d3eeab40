// SPDX-License-Identifier: Apache-2.0

package iam

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// hidden stands wherever a secret would be printed.
const hidden = "[hidden]"

// Secret is a secret access key. No way of printing it shows it: fmt, log/slog, JSON, text. Only Reveal gives it away.
type Secret struct{ text string }

// SecretOf takes a secret that was read from where it is kept.
func SecretOf(text string) Secret { return Secret{text} }

// Reveal is the secret itself, for the one answer that shows it, for keeping it, and for deriving signing keys.
func (s Secret) Reveal() string { return s.text }

// Empty reports whether there is no secret.
func (s Secret) Empty() bool { return s.text == "" }

// String hides the secret.
func (s Secret) String() string { return hidden }

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return hidden }

// Format hides the secret from every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// LogValue hides the secret from log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the secret from encoders of text, XML among them.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalJSON hides the secret from JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(hidden) }
