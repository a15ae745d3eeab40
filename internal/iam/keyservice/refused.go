// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// PathRefused takes reports of refused tokens.
const PathRefused = "/v1/refused"

// CodeNotYet is the code of a "no" that ends by itself in a moment: the instance is being launched.
const CodeNotYet = "InstanceNotReady"

// Refused is a token of a session that an authenticator refused before it knew its maker, and why. Only the service,
// which sealed the session token, can tell that the session is its claimed owner's; that its holder made the token is
// not proven.
type Refused struct {
	AccessKeyID  string `json:"accessKeyID"`
	SessionToken string `json:"sessionToken"`
	Rule         string `json:"rule"`
	Saw          string `json:"saw,omitempty"`
	Fix          string `json:"fix,omitempty"`
}

// LogValue keeps the session token out of logs.
func (r Refused) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String keeps the session token out of what is printed.
func (r Refused) String() string { return "token of " + r.AccessKeyID + " refused by rule " + r.Rule }

// GoString keeps the session token out of what is printed.
func (r Refused) GoString() string { return r.String() }

// maxReason is how many bytes of each part of a reason are kept.
const maxReason = 400

// trimmed bounds what is said, and takes what no terminal should see out of it.
func (r Refused) trimmed() Refused {
	for _, text := range []*string{&r.Rule, &r.Saw, &r.Fix} {
		clean := strings.Map(func(c rune) rune {
			if c < ' ' || c == 0x7f {
				return ' '
			}
			return c
		}, strings.ToValidUTF8(*text, "?"))
		if len(clean) > maxReason {
			clean = strings.ToValidUTF8(clean[:maxReason], "") + "..."
		}
		*text = clean
	}
	return r
}

// Refused reports that a token was refused.
func (c *Client) Refused(ctx context.Context, r Refused) error {
	var nothing struct{}
	if err := c.ask(ctx, PathRefused, r, &nothing); err != nil {
		return fmt.Errorf("reporting a refusal to the identity service: %w", err)
	}
	return nil
}
