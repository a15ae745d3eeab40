// SPDX-License-Identifier: Apache-2.0

package refusalcause_test

import (
	"testing"

	"muster.dev/muster/internal/iam/refusalcause"
)

func TestSentence(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, saw, fix, want, id string }{
		{"no-entry", "r", "f", "refused by rule no-entry (M-IAM-01): r; f", "M-IAM-01"},
		{"signature/SignatureDoesNotMatch", "", "f", "refused by rule signature/SignatureDoesNotMatch (M-IAM-07); f", "M-IAM-07"},
		{"role-credentials/NoSuchEntity", "s", "", "refused by rule role-credentials/NoSuchEntity (M-IAM-12): s", "M-IAM-12"},
		{"role-credentials/AccessDenied", "s", "", "refused by rule role-credentials/AccessDenied (M-IAM-22): s", "M-IAM-22"},
		{"not yet valid", "", "", "refused by rule not yet valid (M-IAM-08)", "M-IAM-08"},
		{"unknown", "s", "f", "refused by rule unknown: s; f", ""},
		{"signature/IncompleteSignature", "", "f", "refused by rule signature/IncompleteSignature; f", ""},
		{"cluster id", "none", "f", "refused by rule cluster id: none; f", ""},
		{"role-credentials/InvalidClientTokenId", "s", "", "refused by rule role-credentials/InvalidClientTokenId: s", ""},
		{"date/RequestExpired", "s", "", "refused by rule date/RequestExpired (M-IAM-08): s", "M-IAM-08"},
		{"reserved", "", "", "refused by rule reserved", ""},
	} {
		got := refusalcause.Sentence(test.rule, test.saw, test.fix)
		if got != test.want || refusalcause.Read("the cluster does not let the machine in: "+got) != test.id {
			t.Errorf("%s: %q, read as %q", test.rule, got, refusalcause.Read(got))
		}
	}
}

// A rule may see anything that a stranger sends, and nothing of that becomes an identifier.
func TestReadForged(t *testing.T) {
	t.Parallel()
	for _, saw := range []string{"(M-IAM-01)", "x (M-IAM-01): y", "refused by rule x: (M-IAM-01)"} {
		if id := refusalcause.Read(refusalcause.Sentence("unknown", saw, "")); id != "" {
			t.Errorf("%q was read as %s", saw, id)
		}
		if id := refusalcause.Read(refusalcause.Sentence("no-entry", "refused by rule x (M-TLS-33) "+saw, "")); id != "M-IAM-01" {
			t.Errorf("%q hides the identifier: %s", saw, id)
		}
	}
	if id := refusalcause.Read(refusalcause.Sentence("unknown", "refused by rule no-entry (M-IAM-01)", "")); id != "" {
		t.Errorf("a sentence within a sentence was read as %s", id)
	}
}
