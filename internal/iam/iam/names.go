// SPDX-License-Identifier: Apache-2.0

package iam

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of IAM, from "IAM and AWS STS quotas" and the API reference.
const (
	MaxUserName    = 64
	MaxRoleName    = 64
	MaxProfileName = 128
	MaxPolicyName  = 128
	MaxPath        = 512
	MaxDescription = 1000
	MaxTags        = 50
	MaxTagKey      = 128
	MaxTagValue    = 256
	MaxKeysPerUser = 2
	MaxAttached    = 10 // managed policies of one user or role
	MaxVersions    = 5  // of a managed policy

	MinSessionName = 2
	MaxSessionName = 64
	MinExternalID  = 2
	MaxExternalID  = 1224

	MinRoleSession     = time.Hour // the least that a role's MaxSessionDuration may be
	MaxRoleSession     = 12 * time.Hour
	DefaultRoleSession = time.Hour
	MinAssume          = 15 * time.Minute
	DefaultAssume      = time.Hour
	MaxChained         = time.Hour // a session got with a session's credentials
	MinSessionToken    = 15 * time.Minute
	MaxSessionToken    = 36 * time.Hour
	DefaultSession     = 12 * time.Hour // of GetSessionToken
	MaxRootSession     = time.Hour      // of GetSessionToken for the account's root
)

// Invalid says which parameter broke which rule. IAM's error code for it is ValidationError.
type Invalid struct {
	Field string // the parameter, as in the API
	Saw   string // cut when long
	Rule  string
}

func (e *Invalid) Error() string { return fmt.Sprintf("%s is %s, but %s", e.Field, e.Saw, e.Rule) }

// DuplicateTag says that two tags have one key. IAM's error code for it is InvalidInput.
type DuplicateTag struct{ Field, Key string }

func (e *DuplicateTag) Error() string {
	return fmt.Sprintf("Duplicate tag keys found. Please note that Tag keys are case insensitive. %s is %s, which another tag has", e.Field, e.Key)
}

// Limit is the error that a quota is used up, such as that of access keys. IAM's error code for it is LimitExceeded.
type Limit struct {
	What string // access keys of the user alice
	Max  int
	Fix  string
}

func (e *Limit) Error() string {
	return fmt.Sprintf("there may be %d %s and no more: %s", e.Max, e.What, e.Fix)
}

// quoted shows a value in an error; a long one is cut.
func quoted(s string) string {
	const most = 80
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:most], len(s))
}

// wordly is [\w+=,.@-] of the API reference, in ASCII.
func wordly(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r != utf8.RuneError && strings.ContainsRune("_+=,.@-", r)
}

func checkName(field, s string, least, most int, allowed func(rune) bool, pattern string) error {
	switch n := utf8.RuneCountInString(s); {
	case !utf8.ValidString(s):
		return &Invalid{field, quoted(s), "it must be UTF-8"}
	case n < least || n > most:
		return &Invalid{field, quoted(s), fmt.Sprintf("it must have %d to %d characters", least, most)}
	case strings.ContainsFunc(s, func(r rune) bool { return !allowed(r) }):
		return &Invalid{field, quoted(s), "it must consist of " + pattern}
	}
	return nil
}

const wordPattern = `[\w+=,.@-]: letters, digits and _ + = , . @ -`

// CheckUserName checks the name of a user.
func CheckUserName(s string) error {
	return checkName("UserName", s, 1, MaxUserName, wordly, wordPattern)
}

// reservedRoles begins the names of the roles that IAM Identity Center makes. Clusters can let these in by the name of
// the permission set in it (aws-iam-authenticator, pkg/config, SSOArnLike), so a user that may make roles must not be
// able to make one.
const reservedRoles = "AWSReservedSSO_"

// CheckRoleName checks the name of a role that somebody makes.
func CheckRoleName(s string) error {
	if len(s) >= len(reservedRoles) && strings.EqualFold(s[:len(reservedRoles)], reservedRoles) {
		return &Invalid{"RoleName", quoted(s), "names that begin with " + reservedRoles + " are for the roles of IAM Identity Center, which is not here"}
	}
	return checkName("RoleName", s, 1, MaxRoleName, wordly, wordPattern)
}

// CheckProfileName checks the name of an instance profile.
func CheckProfileName(s string) error {
	return checkName("InstanceProfileName", s, 1, MaxProfileName, wordly, wordPattern)
}

// CheckPolicyName checks the name of a policy, managed or inline.
func CheckPolicyName(s string) error {
	return checkName("PolicyName", s, 1, MaxPolicyName, wordly, wordPattern)
}

// CheckSessionName checks the name of a role's session.
func CheckSessionName(s string) error {
	return checkName("RoleSessionName", s, MinSessionName, MaxSessionName, wordly, wordPattern)
}

// CheckExternalID checks the external id of AssumeRole.
func CheckExternalID(s string) error {
	return checkName("ExternalId", s, MinExternalID, MaxExternalID, func(r rune) bool { return wordly(r) || r == ':' || r == '/' },
		`[\w+=,.@:/-]`)
}

// CheckAccountID checks an account's id.
func CheckAccountID(s string) error {
	if len(s) != 12 || strings.Trim(s, "0123456789") != "" {
		return &Invalid{"AccountId", quoted(s), "an account id is twelve digits"}
	}
	return nil
}

// CheckAlias checks the alias of an account: 3 to 63 small letters, digits and hyphens, none of them first, last or
// twice in a row.
func CheckAlias(s string) error {
	err := checkName("AccountAlias", s, 3, 63, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' },
		"small letters, digits and hyphens")
	if err == nil && (s[0] == '-' || s[len(s)-1] == '-' || strings.Contains(s, "--")) {
		return &Invalid{"AccountAlias", quoted(s), "a hyphen stands between two letters or digits"}
	}
	return err
}

// CheckPath checks a path: a slash, or text in ASCII between two slashes.
func CheckPath(s string) error {
	if err := checkName("Path", s, 1, MaxPath, func(r rune) bool { return r >= 0x21 && r <= 0x7e }, "visible ASCII characters"); err != nil {
		return err
	}
	if s[0] != '/' || s[len(s)-1] != '/' || strings.Contains(s, "//") {
		return &Invalid{"Path", quoted(s), "a path begins and ends with a slash, with no empty part: /team/app/"}
	}
	// A path lands in ARNs, and ARNs with these would be patterns there.
	if strings.ContainsAny(s, "*?:") {
		return &Invalid{"Path", quoted(s), "muster takes no * ? or : in a path, because the path is part of an ARN and policies read those as patterns"}
	}
	return nil
}

// CheckPathPrefix checks the PathPrefix of a list: as a path, but its end is free.
func CheckPathPrefix(s string) error {
	if err := checkName("PathPrefix", s, 1, MaxPath, func(r rune) bool { return r >= 0x21 && r <= 0x7e }, "visible ASCII characters"); err != nil {
		return err
	}
	if s[0] != '/' {
		return &Invalid{"PathPrefix", quoted(s), "it must begin with a slash"}
	}
	return nil
}

// CheckDescription checks the description of a role or policy.
func CheckDescription(s string) error {
	return checkName("Description", s, 0, MaxDescription, func(r rune) bool {
		return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0x7e || r >= 0xa1 && r <= 0xff
	}, "printable characters up to U+00FF")
}

// CheckTags checks tags for being attached together: keys differ even when case is ignored, as IAM has it.
func CheckTags(tags []Tag) error {
	if len(tags) > MaxTags {
		return TooManyItems("tags")
	}
	seen := map[string]bool{}
	for i, tag := range tags {
		field := fmt.Sprintf("Tags.member.%d", i+1)
		if err := checkName(field+".Key", tag.Key, 1, MaxTagKey, tagRune, tagPattern); err != nil {
			return err
		}
		if err := checkName(field+".Value", tag.Value, 0, MaxTagValue, tagRune, tagPattern); err != nil {
			return err
		}
		lower := strings.ToLower(tag.Key)
		if strings.HasPrefix(lower, "aws:") {
			return &Invalid{field + ".Key", quoted(tag.Key), "keys that begin with aws: are reserved"}
		}
		if seen[lower] {
			return &DuplicateTag{field + ".Key", quoted(tag.Key)}
		}
		seen[lower] = true
	}
	return nil
}

// CheckTagTotal checks how many tags something would have.
func CheckTagTotal(tags []Tag) error {
	if len(tags) > MaxTags {
		return &Limit{"tags", MaxTags, "remove some first"}
	}
	return nil
}

// CheckTagKeys checks the keys of tags that are to be removed.
func CheckTagKeys(keys []string) error {
	if len(keys) > MaxTags {
		return TooManyItems("tagKeys")
	}
	for i, key := range keys {
		if err := checkName(fmt.Sprintf("TagKeys.member.%d", i+1), key, 1, MaxTagKey, tagRune, tagPattern); err != nil {
			return err
		}
	}
	return nil
}

const tagPattern = `[\p{L}\p{Z}\p{N}_.:/=+\-@]: letters, digits, spaces and _ . : / = + - @`

func tagRune(r rune) bool {
	return unicode.In(r, unicode.L, unicode.Z, unicode.N) || r != utf8.RuneError && strings.ContainsRune("_.:/=+-@", r)
}
