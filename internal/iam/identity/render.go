// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/internal/platform/decision"
)

// refusal is an entry's no to a principal that it names.
type refusal struct {
	rule decision.RuleID
	fault
}

func refuse(rule decision.RuleID, fix, format string, args ...any) *refusal {
	return &refusal{rule, fault{fmt.Sprintf(format, args...), fix}}
}

// render fills in the user name and the groups.
func (r *rule) render(p Principal) (name string, groups []string, no *refusal) {
	if r.kind == KindAccount {
		return p.CanonicalARN.String(), nil, nil
	}
	if no := r.elsewhere(p); no != nil {
		return "", nil, no
	}
	if no := r.proven(p); no != nil {
		return "", nil, no
	}
	name, no = r.username.render(p)
	if no != nil {
		return "", nil, no
	}
	if no := r.foreign(name); no != nil {
		return "", nil, no
	}
	if r.fixed != nil || r.groups == nil {
		return name, slices.Clip(r.fixed), nil
	}
	for _, t := range r.groups {
		group, no := t.render(p)
		if no != nil {
			return "", nil, no
		}
		if prefix, ok := hasAny(group, []string{systemPrefix, PolicyGroupPrefix}); ok && !t.literal() && !strings.HasPrefix(t.start(), prefix) {
			return "", nil, refuse(RuleReserved, "put a prefix of its own before the name of the session", "filled in, the group %q becomes %q, which begins with %s", t.source, group, prefix)
		}
		groups = append(groups, group)
	}
	return name, groups, nil
}

// foreign refuses a name that only became somebody else's when it was filled in.
func (r *rule) foreign(name string) *refusal {
	if r.username.literal() || r.proof != proofNone && strings.HasPrefix(r.username.start(), nodePrefix) {
		return nil
	}
	prefix, ok := hasAny(name, r.reserved)
	if !ok {
		prefix, ok = systemPrefix, strings.HasPrefix(name, systemPrefix)
	}
	if !ok {
		return nil
	}
	return refuse(RuleReserved, "put a prefix of its own before the name of the session", "filled in, the user name %q becomes %q, which begins with %s", r.username.source, name, prefix)
}

// Fixes for a refused name, for the person who reads the refusal.
const (
	ownInstance = "only the instance itself gets it, with the credentials of its instance profile"
	nodeSession = "name the session after the node: lower-case letters, digits, - and ."
)

// elsewhere refuses a node's name, and groups that ask for one, to a machine that was launched for another cluster,
// whichever roles it has assumed since. Its role may be that of this cluster's machines, too, and whoever has its
// credentials would be one of them.
func (r *rule) elsewhere(p Principal) *refusal {
	m := p.Machine
	if !r.nodes || m == nil || m.Cluster == "" || m.Cluster == r.cluster {
		return nil
	}
	return refuse(RuleMachineCluster, "a machine is a node of the cluster that it was launched for alone: launch one for this cluster, and give pods and people roles of their own",
		"the session is of machine %s, which was launched for cluster %q, and this is cluster %q", m.ID, m.Cluster, r.cluster)
}

// proven refuses a node's name to a principal that is not proven to be that node. That a session has the name of an
// instance proves nothing: any principal that may assume the role chooses it (aws-iam-authenticator, README, on
// {{SessionName}}).
func (r *rule) proven(p Principal) *refusal {
	const fix = ownInstance
	i := p.Instance
	switch {
	case r.proof == proofNone:
		return nil
	case i == nil:
		return r.unproven(p)
	case r.proof == proofEC2 && !isInstanceID(i.ID):
		return refuse(RuleInstance, fix, "%q is not the id of an instance", i.ID)
	case r.proof == proofEC2 && p.SessionName != i.ID, p.SessionName != i.ID && p.SessionName != i.PrivateDNSName:
		return refuse(RuleInstance, fix, "the session is named %q, and not after the instance %s", p.SessionName, i.ID)
	case r.proof == proofEC2 && i.PrivateDNSName == "":
		return refuse(RuleInstance, "wait until it has one; an instance that has ended has none any more", "the instance %s has no private DNS name", i.ID)
	case r.proof == proofEC2 && !isNodeName(i.PrivateDNSName):
		return refuse(RuleInstance, "see the DHCP options of its VPC: the domain name must be one, in lower case", "the private DNS name %q of the instance %s cannot be a node's name", i.PrivateDNSName, i.ID)
	case r.proof == proofSession && !isNodeName(p.SessionName):
		return refuse(RuleInstance, nodeSession, "the name of the session, %q, cannot be a node's name", p.SessionName)
	}
	return nil
}

func (t template) render(p Principal) (string, *refusal) {
	if t.literal() {
		return t.source, nil
	}
	var space [160]byte
	b := space[:0]
	for _, part := range t.parts {
		value, no := t.value(part, p)
		if no != nil {
			return "", no
		}
		b = append(b, value...)
	}
	return string(b), nil
}

func (t template) value(part part, p Principal) (string, *refusal) {
	switch part.variable {
	case varNone:
		return part.text, nil
	case varAccountID:
		return p.Account, nil
	case varAccessKeyID:
		if len(p.AccessKeyID) < 16 || len(p.AccessKeyID) > 128 || strings.Trim(p.AccessKeyID, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
			return "", refuse(RuleVariable, "use another variable", "there is no access key to fill in for %q", t.source)
		}
		return p.AccessKeyID, nil
	case varPrivateDNSName:
		if p.Instance == nil || !isNodeName(p.Instance.PrivateDNSName) {
			return "", refuse(RuleInstance, ownInstance, "there is no private DNS name to fill in for %q", t.source)
		}
		return p.Instance.PrivateDNSName, nil
	case varSessionName, varSessionNameRaw:
		return t.session(part.variable, p.SessionName)
	}
	return "", refuse(RuleVariable, variablesHint, "%q cannot be filled in", t.source)
}

func (t template) session(v variable, name string) (string, *refusal) {
	switch {
	case name == "":
		return "", refuse(RuleVariable, "write a user name without it; only roles and federated users have sessions", "the principal has no session whose name could be filled in for %q", t.source)
	case len(name) < 2, len(name) > 64, strings.Trim(name, nameCharacters) != "":
		return "", refuse(RuleSessionName, "name the session with 2 to 64 letters, digits and +=,.@-_", "the name of the session, %q, cannot be part of another", name)
	case v == varSessionName:
		return strings.ReplaceAll(name, "@", "-"), nil
	default:
		return name, nil
	}
}

// isInstanceID knows the old ids of 8 digits and those of 17.
func isInstanceID(s string) bool {
	digits, ok := strings.CutPrefix(s, "i-")
	return ok && (len(digits) == 8 || len(digits) == 17) && strings.Trim(digits, "0123456789abcdef") == ""
}

// isNodeName reports whether s is a subdomain as RFC 1123 has it, in lower case, which names of Nodes are.
func isNodeName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	edge := true // the character before was a dot, or none
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			edge = false
		case c == '-' && !edge && i+1 < len(s) && s[i+1] != '.':
		case c == '.' && !edge:
			edge = true
		default:
			return false
		}
	}
	return !edge
}
