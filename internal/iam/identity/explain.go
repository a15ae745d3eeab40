// SPDX-License-Identifier: Apache-2.0

package identity

import "fmt"

// Explain is Map with a check for every entry up to the one that decides, those that name others too. Its cost grows
// with the number of entries.
func (t Table) Explain(p Principal) Outcome {
	k, path, _ := keyOf(p.CanonicalARN)
	if f := inconsistent(p, k); f != nil {
		return Outcome{Rule: RulePrincipal, Reason: f.saw, Fix: f.fix}
	}
	places := make([]int32, len(t.rules))
	for i := range places {
		places[i] = int32(i)
	}
	return t.walk(p, k, path, places)
}

// difference says why an entry is not for a principal.
func (r *rule) difference(p Principal, k key, path string) string {
	switch {
	case r.kind == KindAccount:
		return fmt.Sprintf("it is for account %s, and this is account %s", r.key.account, p.Account)
	case r.byID:
		return fmt.Sprintf("it is for %s", r.subject)
	case k.name == "":
		return fmt.Sprintf("it is for %s, and this is neither a role nor a user", r.subject)
	case r.key.partition != k.partition:
		return fmt.Sprintf("it is for %s, and this is of partition %s", r.subject, k.partition)
	case r.key.account != k.account:
		return fmt.Sprintf("it is for %s, and this is of account %s", r.subject, k.account)
	case r.kind != k.kind && r.pattern == "" || k.kind != KindRole && r.pattern != "":
		return fmt.Sprintf("it is for %s, and this is a %s", r.subject, k.kind)
	case r.pattern == "" && r.key.name == k.name:
		return fmt.Sprintf("it is for %s, and this one's path is %s", r.subject, path)
	case r.kind == KindSSO:
		return fmt.Sprintf("it is for %s, where the * is 16 hexadecimal digits, and this is not named so", r.subject)
	}
	return fmt.Sprintf("it is for %s", r.subject)
}
