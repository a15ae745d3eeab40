// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"path"
	"strings"

	"muster.dev/muster/internal/aws/arn"
)

// key is the index by which a principal is found. There is no path in it: STS never says a role's, and IAM has no two
// roles, nor two users, of one name in an account, whatever their paths and their case (IAM and STS quotas, "IAM name
// requirements").
type key struct {
	partition, account string
	kind               Kind
	name               string // in lower case
}

// keyOf tells the key of a canonical ARN and its path, "/" without one. Roots and federated users have none.
func keyOf(a arn.ARN) (k key, below string, ok bool) {
	kind := KindRole
	below, name, ok := a.Role()
	if !ok {
		kind = KindUser
		below, name, ok = a.User()
	}
	if !ok {
		return key{}, "", false
	}
	return key{partition: a.Partition, account: a.Account, kind: kind, name: strings.ToLower(name)}, below, true
}

// ssoPrefix begins the names of the roles that IAM Identity Center makes: AWSReservedSSO_NAME_0123456789abcdef.
const ssoPrefix = "awsreservedsso_"

// ssoSuffix is how long the underscore and the digits at their end are.
const ssoSuffix = 17

// permissionSet tells the permission set, in lower case, that a role of that name is made for.
func permissionSet(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, ssoPrefix)
	if !ok || len(rest) <= ssoSuffix {
		return "", false
	}
	set, suffix := rest[:len(rest)-ssoSuffix], rest[len(rest)-ssoSuffix:]
	if suffix[0] != '_' || strings.Trim(suffix[1:], "0123456789abcdef") != "" {
		return "", false
	}
	return set, true
}

// glob reports whether a name fits a pattern, in which * stands for any number of characters. Neither has a slash in
// it, nor another character that path.Match takes for more than itself.
func glob(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

func isAccount(s string) bool { return len(s) == 12 && strings.Trim(s, "0123456789") == "" }
