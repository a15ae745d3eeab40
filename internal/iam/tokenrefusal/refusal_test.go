// SPDX-License-Identifier: Apache-2.0

package tokenrefusal_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/iam/tokenrefusal"
)

func TestError(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]*tokenrefusal.Refusal{
		"size: saw 20 KiB; send less":         tokenrefusal.New("size", "20 KiB", "send less"),
		"missing parameter: sign it as it is": tokenrefusal.New("missing parameter", "", "sign it as it is"),
	} {
		if got := r.Error(); got != want {
			t.Errorf("the error is %q, not %q", got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"":                               `""`,
		"two\nlines":                     `"two\nlines"`,
		strings.Repeat("x", 80):          `"` + strings.Repeat("x", 80) + `"`,
		strings.Repeat("x", 80) + "rest": `"` + strings.Repeat("x", 80) + `"…`,
	} {
		if got := tokenrefusal.Quote(sent); got != want {
			t.Errorf("%q is shown as %s, not %s", sent, got, want)
		}
	}
}
