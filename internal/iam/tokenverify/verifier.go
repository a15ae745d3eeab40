// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/ststoken"
)

// Verifier finds the maker of a token. It may be called by many at once.
type Verifier interface {
	Verify(ctx context.Context, t ststoken.Token) (Identity, error)
	// Admit says that the maker of a good token with an access key is let in: from now on its questions do not wait for
	// strangers'. That a token is good is not enough, as everybody has an AWS account.
	Admit(accessKeyID string)
	// Admitted reports whether that was told of an access key.
	Admitted(accessKeyID string) bool
}

// Identity is a principal that STS vouches for.
type Identity struct {
	identity.Principal
	// ValidUntil is until when the answer may be used again. It is never zero.
	ValidUntil time.Time
	// OutageUntil is until when the answer may be used while no newer answer can be had; zero if no longer than
	// ValidUntil.
	OutageUntil time.Time
	// Unproven says why Principal.Instance is nil although the session is named after an instance: *Refused or
	// *Unavailable.
	Unproven error
}

// Refused is a "no".
type Refused struct {
	Rule string // that refused
	Code string // STS's, such as SignatureDoesNotMatch, if there is one
	Saw  string
	Fix  string
}

func (r *Refused) Error() string {
	var b strings.Builder
	b.WriteString(r.Rule)
	for _, part := range []string{r.Code, r.Saw} {
		if part != "" {
			b.WriteString(": " + part)
		}
	}
	if r.Fix != "" {
		b.WriteString("; " + r.Fix)
	}
	return b.String()
}

// ErrThrottled means that there are more questions than answers now.
var ErrThrottled = errors.New("too many requests at once: try again")

// Unavailable means that the maker of the token could not be found.
type Unavailable struct {
	Asked string // the server or service that was asked
	Err   error
}

func (u *Unavailable) Error() string {
	return fmt.Sprintf("%s could not verify the token: %v", u.Asked, u.Err)
}

// Unwrap returns the cause.
func (u *Unavailable) Unwrap() error { return u.Err }
