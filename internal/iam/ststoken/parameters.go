// SPDX-License-Identifier: Apache-2.0

package ststoken

import (
	"slices"
	"strings"

	"muster.dev/muster/internal/iam/tokenrefusal"
)

// parameters that a token may have, as SDKs spell them.
func parameters() [9]string {
	return [9]string{
		"Action", "Version", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Signature",
		"X-Amz-Security-Token", // the last and the only one that may be missing: long-lived keys have none
	}
}

// checkParameters asks for each parameter once, in one spelling and with one encoding. Parameters that STS and this
// program could read in two ways are how CVE-2022-2385 came about.
func checkParameters(query string) *tokenrefusal.Refusal {
	names := parameters()
	var there [len(names)]bool
	for rest, more := query, true; more; {
		var one string
		one, rest, more = strings.Cut(rest, "&")
		name, value, ok := strings.Cut(one, "=")
		which := slices.IndexFunc(names[:], func(known string) bool { return len(known) == len(name) && strings.EqualFold(known, name) })
		if which < 0 {
			return tokenrefusal.New(RuleParameter, tokenrefusal.Quote(name), "presign GetCallerIdentity without further parameters")
		}
		switch {
		case there[which]:
			return tokenrefusal.New(RuleDuplicate, tokenrefusal.Quote(name), "send each parameter once, whatever its spelling")
		case names[which] != name:
			return tokenrefusal.New(RuleParameter, tokenrefusal.Quote(name), "spell it "+names[which])
		case !ok || value == "" || !isEncoded(value):
			return tokenrefusal.New(RuleValue, name+" with a value that is empty or not encoded as it is signed",
				"escape all but letters, digits and -._~, once and in upper case")
		}
		there[which] = true
		switch {
		case name == "Action" && value != "GetCallerIdentity":
			return tokenrefusal.New(RuleAction, tokenrefusal.Quote(value), "presign GetCallerIdentity")
		case name == "Version" && value != "2011-06-15":
			return tokenrefusal.New(RuleVersion, tokenrefusal.Quote(value), "presign version 2011-06-15 of STS")
		}
	}
	for i, name := range names[:len(names)-1] {
		if !there[i] {
			return tokenrefusal.New(RuleMissing, "no "+name, "make the token with aws eks get-token or muster token get")
		}
	}
	return nil
}

// isEncoded reports whether a value is spelled as it is in the canonical request, so that there is no second token with
// the same signature.
func isEncoded(s string) bool {
	for i := 0; i < len(s); i++ {
		if isUnreserved(s[i]) {
			continue
		}
		if s[i] != '%' || i+2 >= len(s) {
			return false
		}
		high, low := strings.IndexByte(upperHex, s[i+1]), strings.IndexByte(upperHex, s[i+2])
		if high < 0 || low < 0 || isUnreserved(byte(high<<4|low)) { //nolint:gosec // G115: both are at most 15
			return false
		}
		i += 2
	}
	return true
}

const upperHex = "0123456789ABCDEF"

func isUnreserved(c byte) bool {
	return isLowerAlnum(c) || c >= 'A' && c <= 'Z' || c == '-' || c == '.' || c == '_' || c == '~'
}
