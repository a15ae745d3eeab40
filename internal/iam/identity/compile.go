// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/arn"
)

// draft is an entry of any source.
type draft struct {
	source      Source
	entry       string
	kind        Kind
	arn         string
	sso         SSO
	account     string
	principalID string
	username    string
	groups      []string
	// session is the ARN of a session that stands for its role.
	session string
	// byID means that the entry names its principal by its id alone.
	byID bool
	// ofType means that user name and groups come from the type of an access entry.
	ofType    bool
	wrongType bool
	// added is a group that the entry cannot name by itself.
	added  string
	fields fields
}

// fields are the names that people know the parts of an entry by.
type fields struct{ arn, id, username, groups string }

// compiler makes rules of drafts.
type compiler struct {
	options  Options
	trusted  map[key]*trustedRole // a role of which more than one thing is said has nil
	problems []Problem
	rule     *rule
	draft    draft
}

// compile reads an entry. A rule that cannot be used has a problem, but its key if that is known.
func (c *compiler) compile(d draft) rule {
	r := rule{source: d.source, entry: d.entry, kind: d.kind, subject: d.arn, principalID: d.principalID, path: "/", reserved: c.options.reserved(d.source), cluster: c.options.Cluster}
	c.rule, c.draft = &r, d
	switch d.kind {
	case KindAccount:
		c.accountOf(d)
		return r // its user name is the caller's own ARN, so there is nothing more to read
	case KindSSO:
		c.ssoOf(d)
	case KindRole, KindUser:
		if d.byID {
			c.rule.byID, c.rule.subject = true, "the "+string(d.kind)+" "+d.principalID
			break
		}
		c.principalOf(d)
	default:
		c.refuse(d.fields.arn, fault{fmt.Sprintf("is of the unknown kind %q", d.kind), "name a role, a user or an account"})
	}
	if d.principalID == "" && d.source == SourceAccessEntry && c.options.PrincipalIDs {
		c.refuse(d.fields.id, fault{
			"is missing, so that a principal that is created later under the same name could not be told from the one the entry is for",
			"it is filled in when the entry is made, if its principal is there by then: make sure of the principal, then delete the entry and make it again",
		})
	}
	if d.principalID != "" && !isPrincipalID(d.principalID) {
		c.refuse(d.fields.id, fault{fmt.Sprintf("is not an ID of a principal: %q", d.principalID), "it is AROA… of a role or AIDA… of a user, as aws iam get-role says, without a session"})
	}
	if d.wrongType {
		c.refuse("spec.type", fault{"is not a type of access entries", "it is STANDARD, EC2_LINUX, EC2_WINDOWS, FARGATE_LINUX or HYBRID_LINUX"})
		return r
	}
	if prefix := map[Kind]string{KindRole: "AROA", KindUser: "AIDA"}[d.kind]; d.byID && r.problem == nil && !strings.HasPrefix(d.principalID, prefix) {
		c.refuse(d.fields.id, fault{fmt.Sprintf("is not an ID of a %s: %q", d.kind, d.principalID), fmt.Sprintf("ids of a %s begin with %s", d.kind, prefix)})
	}
	if d.session != "" {
		c.warn(d.fields.arn, fault{fmt.Sprintf("is the ARN of a session, and every session of the role is let in: %s", d.session), "give that of its role, " + d.arn})
	}
	c.names(d)
	return r
}

// refuse takes the rule out of use. The rule keeps its first problem, which refusals name.
func (c *compiler) refuse(field string, f fault) {
	p := Problem{Source: c.draft.source, Entry: c.draft.entry, Field: field, Saw: f.saw, Fix: f.fix, Unused: true}
	c.problems = append(c.problems, p)
	if c.rule.problem == nil {
		c.rule.problem = &p
	}
}

// warn tells a problem of an entry that is used nevertheless.
func (c *compiler) warn(field string, f fault) {
	c.problems = append(c.problems, Problem{Source: c.draft.source, Entry: c.draft.entry, Field: field, Saw: f.saw, Fix: f.fix})
}

func (c *compiler) accountOf(d draft) {
	c.rule.subject = "every principal of account " + d.account
	c.rule.key.account = d.account
	if !isAccount(d.account) {
		c.refuse("", fault{fmt.Sprintf("is not an account: %q", d.account), "an account is 12 digits, in quotes so that YAML keeps zeros at its start"})
	}
}

func (c *compiler) ssoOf(d draft) {
	partition := d.sso.Partition
	if partition == "" {
		partition = c.options.partition()
	}
	c.rule.subject = fmt.Sprintf("arn:%s:iam::%s:role/AWSReservedSSO_%s_*", partition, d.sso.Account, d.sso.PermissionSet)
	c.rule.key = key{partition: partition, account: d.sso.Account, kind: KindRole}
	c.rule.pattern = strings.ToLower(d.sso.PermissionSet)
	switch {
	case !c.options.RolePatterns:
		c.refuse("sso", fault{"maps the roles of a permission set, which is not switched on", "switch role patterns on, or name the role by its ARN"})
	case !isPermissionSet(d.sso.PermissionSet):
		c.refuse("sso.permissionSetName", fault{fmt.Sprintf("is not a permission set: %q", d.sso.PermissionSet), "give its name, of at most 32 letters, digits and +=,.@-_"})
	case !isAccount(d.sso.Account):
		c.refuse("sso.accountID", fault{fmt.Sprintf("is not an account: %q", d.sso.Account), "an account is 12 digits, in quotes so that YAML keeps zeros at its start"})
	case !strings.HasPrefix(partition, "aws") || strings.Trim(partition, "abcdefghijklmnopqrstuvwxyz-") != "":
		c.refuse("sso.partition", fault{fmt.Sprintf("is not a partition: %q", partition), "it is aws, aws-cn, aws-us-gov or the like"})
	}
}

// principalOf reads the ARN of a role or a user.
func (c *compiler) principalOf(d draft) {
	field := d.fields.arn
	if d.arn == "" {
		c.refuse(field, fault{"is missing", fmt.Sprintf("give the ARN of the %s", d.kind)})
		return
	}
	if strings.Contains(d.arn, "*") {
		c.patternOf(d)
		return
	}
	a, err := arn.Parse(d.arn)
	if err != nil {
		c.refuse(field, fault{fmt.Sprintf("is not an ARN: %q: %v", clip(d.arn), err), fmt.Sprintf("give the ARN of the %s, as aws iam get-%[1]s says", d.kind)})
		return
	}
	k, path, ok := keyOf(a)
	if !ok {
		c.refuse(field, notAPrincipal(a, d))
		return
	}
	c.rule.key, c.rule.path = k, path
	switch {
	case k.kind != d.kind && d.source == SourceAWSAuth, k.kind != d.kind && d.source == SourceFile:
		c.refuse(field, fault{fmt.Sprintf("is the ARN of a %s: %s", k.kind, a), fmt.Sprintf("move the entry to %s, with %sarn", listOf(k.kind), k.kind)})
	case strings.HasPrefix(path, "/aws-service-role/") && d.source == SourceAccessEntry:
		c.refuse(field, fault{fmt.Sprintf("is a service-linked role: %s", a), "access entries cannot be made for these"})
	case d.ofType && k.kind != KindRole:
		c.refuse(field, fault{fmt.Sprintf("is a %s: %s", k.kind, a), "an entry of nodes is for the role of their instance profile"})
	case d.ofType && c.options.Account != "" && k.account != c.options.Account:
		c.refuse(field, fault{fmt.Sprintf("is of account %s: %s", k.account, a), fmt.Sprintf("an entry of nodes is for a role of the cluster's own account %s", c.options.Account)})
	}
}

// notAPrincipal explains the ARNs that people take for a principal's.
func notAPrincipal(a arn.ARN, d draft) fault {
	if name, ok := a.LongName(); ok { // aws-iam-authenticator keeps such an entry and says nothing, as no principal ever has that name
		kind := KindRole
		if strings.HasPrefix(a.Resource, "user/") {
			kind = KindUser
		}
		return fault{
			fmt.Sprintf("has a name of %d characters, and IAM's have at most %d, so nobody is meant: %s", len(name), arn.MaxName, a),
			fmt.Sprintf("give the ARN as aws iam get-%s says; eksctl and CloudFormation cut the names that they make", kind),
		}
	}
	if canonical, err := a.Canonical(); err == nil && canonical != a {
		return fault{fmt.Sprintf("is the ARN of a session: %s", a), fmt.Sprintf("give that of its role, %s", canonical)}
	}
	if name, ok := strings.CutPrefix(a.Resource, "instance-profile/"); ok && a.Service == "iam" {
		return fault{
			fmt.Sprintf("is the ARN of an instance profile: %s", a),
			fmt.Sprintf("give that of the role in it, as aws iam get-instance-profile --instance-profile-name %s says", name[strings.LastIndex(name, "/")+1:]),
		}
	}
	return fault{fmt.Sprintf("is neither a role nor a user: %s", a), fmt.Sprintf("give the ARN of the %s, as aws iam get-%[1]s says", d.kind)}
}

// minPattern is how much of a role's name must stand before the first *: less would be most of an account.
const minPattern = 3

func (c *compiler) patternOf(d draft) {
	field := d.fields.arn
	at := strings.LastIndexByte(d.arn, '/') + 1
	name := d.arn[at:]
	a, err := arn.Parse(d.arn[:at] + strings.ReplaceAll(name, "*", "x"))
	k, path, ok := keyOf(a)
	first, _, _ := strings.Cut(name, "*")
	switch {
	case d.kind != KindRole || d.source == SourceAccessEntry:
		c.refuse(field, fault{fmt.Sprintf("has a * in it: %q", clip(d.arn)), "name one principal"})
	case !c.options.RolePatterns:
		c.refuse(field, fault{fmt.Sprintf("has a * in it, and role patterns are not switched on: %q", clip(d.arn)), "switch role patterns on, or name the role by its ARN"})
	case err == nil && len(strings.ReplaceAll(name, "*", "")) > arn.MaxName:
		c.refuse(field, fault{fmt.Sprintf("is longer without * than any name, which has at most %d characters: %q", arn.MaxName, clip(d.arn)), "shorten it"})
	case err != nil, !ok, k.kind != KindRole:
		c.refuse(field, fault{fmt.Sprintf("is not a pattern of roles: %q", clip(d.arn)), "* may stand in the name of a role only: arn:aws:iam::111122223333:role/team-*"})
	case len(first) < minPattern, strings.Count(name, "*") > 4:
		c.refuse(field, fault{fmt.Sprintf("is too wide a pattern: %q", clip(d.arn)), fmt.Sprintf("begin the name with at least %d characters, and write at most four *", minPattern)})
	default:
		c.rule.path, c.rule.pattern = path, strings.ToLower(name)
		c.rule.key = key{partition: k.partition, account: k.account, kind: KindRole}
		// Of AWSReservedSSO_Admin_* the * is the digits at the end, and not the rest of another permission set's name.
		if set, ok := strings.CutPrefix(c.rule.pattern, ssoPrefix); ok && strings.HasSuffix(set, "_*") && strings.Count(set, "*") == 1 {
			c.rule.kind, c.rule.pattern = KindSSO, strings.TrimSuffix(set, "_*")
		}
	}
}

func isPrincipalID(s string) bool {
	return len(s) >= 16 && len(s) <= 128 && s[0] == 'A' && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

func isPermissionSet(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, nameCharacters) == ""
}

// nameCharacters may stand in the names of sessions and permission sets (AssumeRole, RoleSessionName).
const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+=,.@-"

func listOf(k Kind) string {
	if k == KindUser {
		return "mapUsers"
	}
	return "mapRoles"
}

func clip(s string) string {
	if len(s) > 256 {
		return s[:256] + "…"
	}
	return s
}

// reserved are the prefixes that user names of a source must not have.
func (o Options) reserved(s Source) []string {
	if list, ok := o.Reserved[s]; ok {
		return slices.Clone(list)
	}
	return DefaultReserved(s)
}

func (o Options) partition() string {
	if o.Partition == "" {
		return "aws"
	}
	return o.Partition
}
