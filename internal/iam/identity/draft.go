// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"

	"muster.dev/muster/internal/aws/arn"
)

// groupsOf returns the groups that an access entry of nodes has by its type. Windows nodes may configure kube-proxy,
// and Fargate nodes run it. No type has system:bootstrappers: a node asks for its certificate as a node.
func groupsOf(t EntryType) []string {
	switch t {
	case TypeEC2Linux, TypeHybridLinux:
		return []string{groupNodes}
	case TypeEC2Windows:
		return []string{groupNodes, "eks:kube-proxy-windows"}
	case TypeFargateLinux:
		return []string{groupNodes, "system:node-proxier"}
	case TypeStandard:
	}
	return nil
}

func (e AccessEntry) draft(c *compiler) draft {
	d := draft{
		source: SourceAccessEntry, entry: e.Name, kind: KindRole,
		arn: e.PrincipalARN, principalID: e.PrincipalID, username: e.Username, groups: e.Groups,
		fields: fields{"spec.principalARN", "spec.principalID", "spec.username", "spec.kubernetesGroups"},
	}
	if len(e.Policies) > 0 {
		d.added = PolicyGroup(e.Name)
	}
	a, err := arn.Parse(e.PrincipalARN)
	if _, _, user := a.User(); err == nil && user {
		d.kind = KindUser
	}
	wrong := func(field string, f fault) {
		c.problems = append(c.problems, Problem{Source: SourceAccessEntry, Entry: e.Name, Field: field, Saw: f.saw, Fix: f.fix})
	}
	switch e.Type {
	case TypeEC2Linux, TypeEC2Windows, TypeFargateLinux, TypeHybridLinux:
		if e.Username != "" || len(e.Groups) > 0 || len(e.Policies) > 0 {
			wrong("spec.type", fault{fmt.Sprintf("is %s, so user name, groups and access policies are not looked at", e.Type), "remove them"})
		}
		d.ofType, d.added, d.groups, d.username = true, "", groupsOf(e.Type), nodePrefix+"{{EC2PrivateDNSName}}"
		if e.Type == TypeFargateLinux || e.Type == TypeHybridLinux {
			d.username = nodePrefix + "{{SessionName}}"
		}
	case TypeStandard, "":
		if d.username != "" {
			break
		}
		d.username = automatic(a)
	default:
		d.ofType, d.username = true, nodePrefix+"{{EC2PrivateDNSName}}"
		d.wrongType = true
	}
	return d
}

// automatic is the user name of an entry that gives none: the ARN of a user; of a role that of its session, as STS
// would say it.
func automatic(a arn.ARN) string {
	if a.IsZero() {
		return "-" // the entry is not used anyway
	}
	if _, name, ok := a.Role(); ok {
		return fmt.Sprintf("arn:%s:sts::%s:assumed-role/%s/{{%s}}", a.Partition, a.Account, name, varSessionName)
	}
	return a.String()
}

func (m Mapping) draft() draft {
	d := draft{
		source: m.Source, entry: m.Entry, kind: m.Kind, arn: m.ARN, sso: m.SSO, account: m.Account,
		principalID: m.PrincipalID, username: m.Username, groups: m.Groups,
		fields: fields{string(m.Kind) + "arn", "userid", "username", "groups"},
	}
	if m.Kind == KindSSO {
		d.fields.arn = "sso"
	}
	if m.Source == SourceFile {
		d.asUpstreamReads()
	}
	if m.Source == SourceIdentityMapping {
		d.fields = fields{"spec.arn", "spec.arn", "spec.username", "spec.groups"}
		// One field is for both, so what is in it says which. aws-iam-authenticator takes the ARN of a session for its
		// role's here.
		d.kind = KindRole
		if a, err := arn.Parse(m.ARN); err == nil {
			if canonical, err := a.Canonical(); err == nil {
				a, d.arn = canonical, canonical.String()
			}
			if _, _, user := a.User(); user {
				d.kind = KindUser
			}
		}
	}
	return d
}

// asUpstreamReads reads what aws-iam-authenticator takes in its files beside ARNs of roles and users: the ARN of a
// session stands for its role (MountedFile), and an id for the principal that has it (DynamicFile with
// dynamicfileUserIDStrict).
func (d *draft) asUpstreamReads() {
	a, err := arn.Parse(d.arn)
	if _, _, session := a.AssumedRole(); err == nil && session && d.kind == KindRole {
		if canonical, err := a.Canonical(); err == nil {
			d.session, d.arn = d.arn, canonical.String()
		}
	}
	d.byID = d.arn == "" && d.principalID != "" && (d.kind == KindRole || d.kind == KindUser)
}
