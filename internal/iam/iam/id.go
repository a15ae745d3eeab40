// SPDX-License-Identifier: Apache-2.0

package iam

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"
)

// Prefix tells what a unique id or a key id belongs to.
type Prefix string

// The prefixes, from "IAM identifiers" of the IAM user guide.
const (
	UserPrefix       Prefix = "AIDA"
	RolePrefix       Prefix = "AROA"
	ProfilePrefix    Prefix = "AIPA"
	PolicyPrefix     Prefix = "ANPA"
	GroupPrefix      Prefix = "AGPA"
	KeyPrefix        Prefix = "AKIA" // a long-lived access key
	SessionKeyPrefix Prefix = "ASIA" // the key of temporary credentials
)

// alphabet is that of base32: no 0, 1, 8 or 9.
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

// secretBytes make the 40 characters of a secret access key.
const secretBytes = 30

// digits is how many characters follow the prefix: a key id is 20 characters long, a unique id 21.
func (p Prefix) digits() int {
	switch p {
	case KeyPrefix, SessionKeyPrefix:
		return 16
	case UserPrefix, RolePrefix, ProfilePrefix, PolicyPrefix, GroupPrefix:
		return 17
	}
	return 0
}

// NewID makes an id that nobody had before: 80 bits of chance at least.
func NewID(p Prefix, random io.Reader) (string, error) {
	n := p.digits()
	if n == 0 {
		return "", fmt.Errorf("no ids begin with %q", string(p))
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", fmt.Errorf("making an id that begins with %s: %w", p, err)
	}
	for i, b := range raw {
		raw[i] = alphabet[b&31] // 256 is eight times 32, so each character is as likely as the others
	}
	return string(p) + string(raw), nil
}

// IsID reports whether s is an id of that prefix, of the right length and alphabet.
func IsID(p Prefix, s string) bool {
	rest, ok := strings.CutPrefix(s, string(p))
	return ok && p.digits() > 0 && len(rest) == p.digits() && strings.Trim(rest, alphabet) == ""
}

// NewSecret makes a secret access key: 240 bits of chance in 40 characters of base64.
func NewSecret(random io.Reader) (Secret, error) {
	raw := make([]byte, secretBytes)
	if _, err := io.ReadFull(random, raw); err != nil {
		return Secret{}, fmt.Errorf("making a secret access key: %w", err)
	}
	return Secret{base64.StdEncoding.EncodeToString(raw)}, nil
}

// NewAccessKey makes an active key for the user.
func NewAccessKey(user User, now time.Time, random io.Reader) (AccessKey, error) {
	if !IsID(UserPrefix, user.ID) {
		return AccessKey{}, fmt.Errorf("the user %q has no unique id: an access key belongs to an id, not to a name", user.Name)
	}
	id, err := NewID(KeyPrefix, random)
	if err != nil {
		return AccessKey{}, err
	}
	secret, err := NewSecret(random)
	if err != nil {
		return AccessKey{}, err
	}
	return AccessKey{
		ID: id, Account: user.Account, UserID: user.ID, UserName: user.Name, Secret: secret, Status: Active, Created: now.UTC().Truncate(time.Second),
	}, nil
}
