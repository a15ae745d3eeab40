// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

func usable[T any](f policy.Fact[T]) bool {
	return f.State == policy.Known && now.Sub(f.At) <= 2*time.Minute
}

func absent[T any](f policy.Fact[T]) bool {
	return f.State == policy.Absent && now.Sub(f.At) <= 2*time.Minute
}

// approved names the approver: nobody, a program, or a person, for which the policy may name more reasons.
func (w *world) approved() (somebody, person bool) {
	for _, c := range w.object.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved {
			return true, c.Reason == "KubectlApprove" || c.Reason == "ApprovedByOperator" || slices.Contains(w.policy.ApprovalReasons, c.Reason)
		}
	}
	return false, false
}

func (w *world) has(group string) bool { return slices.Contains(w.object.Spec.Groups, group) }

// asker is the requester, by the user name and the group that go together. An approved request counts as asked for by
// the person or program that approved it.
func (w *world) asker() string {
	somebody, person := w.approved()
	switch {
	case person:
		return "person"
	case somebody:
		return "program"
	case strings.HasPrefix(w.object.Spec.Username, "system:node:") && w.has("system:nodes"):
		return "node"
	case w.isToken():
		return "token"
	}
	return "stranger"
}

func (w *world) isToken() bool {
	return w.object.Spec.Username == "system:bootstrap:abcdef" && w.has("system:bootstrappers")
}

// mustNotBeApproved says what is wrong with an approval.
func (w *world) mustNotBeApproved(t *testing.T) string {
	t.Helper()
	spec := w.object.Spec
	csr, err := pki.Parse(spec.Request)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range csr.DNSNames() {
		if strings.HasSuffix(n, ".") || strings.Contains(n, "*") {
			return n + " is good for nobody"
		}
		names = append(names, strings.ToLower(n))
	}
	for _, a := range csr.Addresses() {
		names = append(names, a.String())
	}
	somebody, _ := w.approved()
	switch {
	case slices.Contains(names, "kubernetes"), slices.Contains(names, "10.100.0.1"):
		return "it has a name of the API server"
	case len(w.object.Status.Conditions) > 0 && !somebody:
		return "it was decided"
	case !usable(w.facts.KeyOwner) && !absent(w.facts.KeyOwner):
		return "nobody knows whose key it is"
	}
	if strings.HasPrefix(spec.SignerName, "kubernetes.io/kube-apiserver-client-kubelet") || spec.SignerName == "kubernetes.io/kubelet-serving" {
		return w.wrongForNode(csr, names)
	}
	return w.wrongForOthers(csr, names)
}

func (w *world) wrongForOthers(csr pki.Request, names []string) string {
	somebody, _ := w.approved()
	switch {
	case !somebody:
		return "no person approved it"
	case csr.CommonName() == "kubernetes" || strings.HasPrefix(csr.CommonName(), "system:"):
		return "it is the control plane, or a node"
	case slices.Contains(csr.Organization(), "system:masters") || slices.Contains(csr.Organization(), "system:nodes"):
		return "it is in a group of the control plane"
	case usable(w.facts.KeyOwner) && w.facts.KeyOwner.Value != "" && w.facts.KeyOwner.Value != "user:vip":
		return "the key is a node's"
	}
	server := slices.Contains(w.object.Spec.Usages, certificatesv1.UsageServerAuth)
	client := slices.Contains(w.object.Spec.Usages, certificatesv1.UsageClientAuth)
	switch signer := w.object.Spec.SignerName; {
	case strings.HasSuffix(signer, "client") && (server || !client || len(names) > 0):
		return "a client's certificate is for clients"
	case signer == appServing && (client || !server):
		return "a serving certificate is for servers"
	}
	for _, n := range names {
		if _, err := netip.ParseAddr(n); err != nil && !absent(w.facts.Nodes[n]) && (!usable(w.facts.Nodes[n]) || w.facts.Nodes[n].Value) {
			return n + " may be a node's"
		}
		if o := w.facts.Owners[n]; !absent(o) && (!usable(o) || len(o.Value) > 0) {
			return n + " may be a machine's"
		}
	}
	return ""
}

func (w *world) wrongForNode(csr pki.Request, names []string) string {
	f, m := w.facts, w.facts.NodeMachine.Value
	isNode := strings.HasPrefix(w.object.Spec.Username, "system:node:") && w.has("system:nodes")
	somebody, person := w.approved()
	switch {
	case !usable(f.NodeMachine):
		return "the machine is not known"
	case csr.CommonName() != "system:node:"+m.NodeName:
		return "the machine is another node"
	case m.Deleting:
		return "the machine is being deleted"
	case w.saysWhichMachine() && !absent(f.Elsewhere):
		return "the machine that asks may be another cluster's"
	case isNode && w.object.Spec.Username != csr.CommonName():
		return "a node asks for another"
	case !isNode && !w.isToken() && !person:
		return "nobody vouches for the requester"
	case w.isToken() && w.object.Spec.SignerName != pki.SignerKubeletClient && !person:
		return "a token asks for a serving certificate"
	case (!usable(f.Access) || !f.Access.Value) && !somebody:
		return "access was not reviewed"
	case usable(f.KeyOwner) && f.KeyOwner.Value != m.NodeName:
		return "the key is another's"
	}
	if w.isToken() {
		if why := w.wrongForToken(m); why != "" {
			return why
		}
	}
	if isNode && !person {
		if why := w.wrongCredential(m); why != "" {
			return why
		}
	}
	if !isNode && w.object.Spec.SignerName == pki.SignerKubeletClient {
		if why := w.wrongForExisting(m); why != "" {
			return why
		}
	}
	return w.wrongNames(m, names)
}

// bindings counts what binds the token, by kind, and reports whether all of it can be read.
func (w *world) bindings() (counts map[string]int, all int, readable bool) {
	counts = map[string]int{}
	for _, g := range w.object.Spec.Groups {
		if text, ok := strings.CutPrefix(g, "system:bootstrappers:muster:"); ok {
			kind, _, other := strings.Cut(text, ":")
			if !other {
				kind = "machine"
			}
			counts[kind]++
			all++
		}
	}
	readable = counts["zone"] == 0
	for _, n := range counts {
		readable = readable && n == 1
	}
	return counts, all, readable
}

// saysWhichMachine reports whether the requester is one that the account knows by the id of its machine.
func (w *world) saysWhichMachine() bool {
	session := w.object.Spec.Extra["sessionName"]
	counts, _, readable := w.bindings()
	return len(session) == 1 && strings.HasPrefix(session[0], "i-") || w.isToken() && readable && counts["machine"] == 1
}

func (w *world) wrongCredential(m policy.Machine) string {
	c := w.facts.Credential
	if len(w.object.Spec.Extra[credentialID]) == 0 {
		if w.policy.RequireCredential {
			return "it is not told with which certificate it was asked"
		}
		return ""
	}
	source, id, sourced := strings.Cut(string(c.Value.Machine), "|")
	if !sourced {
		source, id = "test", source
	}
	switch {
	case !usable(c):
		return "nobody knows whose certificate it was asked with"
	case id != "" && source == "test" && id != m.ID:
		return "another machine's certificate asks"
	case id == "" && !m.Created.IsZero() && !c.Value.Since.IsZero() && m.Created.Sub(c.Value.Since) > 6*time.Minute:
		return "the certificate that asks is older than the machine"
	case (id == "" || source != "test") && c.Value.Rejoined:
		return "the certificate that asks is from before somebody joined as the node"
	case (id == "" || source != "test") && c.Value.Replaced:
		return "the certificate that asks may be another machine's"
	case (id == "" || source != "test") && usable(w.facts.LastMachine) && w.otherBefore(m):
		return "the certificate that asks may be that of the machine before"
	}
	return ""
}

// otherBefore reports whether the last certificate of the node was another machine's of the same source.
func (w *world) otherBefore(m policy.Machine) bool {
	last := string(w.facts.LastMachine.Value)
	source, id, sourced := strings.Cut(last, "|")
	if !sourced {
		source, id = "test", source
	}
	return source == "test" && id != "" && id != m.ID
}

func (w *world) wrongForToken(m policy.Machine) string {
	f := w.facts
	_, person := w.approved()
	counts, bindings, readable := w.bindings()
	inBinding := w.has(kubeadm) && len(w.policy.Bootstrap.Bindings) > 0
	switch {
	case !readable:
		return "what binds the token cannot be read"
	case bindings == 0 && !inBinding && !w.policy.Bootstrap.UnboundTokens:
		if person {
			return "" // the person vouched for what the groups do not tell
		}
		return "the token is good for nothing"
	case w.object.Spec.SignerName == pki.SignerKubeletClient && !person && (!usable(f.TokenSpent) || f.TokenSpent.Value):
		return "the token may have been used before"
	}
	age := now.Sub(m.Created)
	late := w.policy.Bootstrap.Window > 0 && (m.Created.IsZero() || age < -time.Minute || age > w.policy.Bootstrap.Window)
	if late && !person && counts["rejoin"] == 0 {
		return "the machine was made at another time"
	}
	machineGroup := "system:bootstrappers:muster:" + m.ID
	nameGroup := "system:bootstrappers:muster:name:" + strings.ReplaceAll(m.NodeName, ".", ":")
	switch {
	case counts["machine"] == 1 && (!w.has(machineGroup) || !usable(f.TokenMachine) || f.TokenMachine.Value.ID != m.ID || f.TokenMachine.Value.NodeName != m.NodeName):
		return "the token is another machine's"
	case counts["name"] == 1 && !w.has(nameGroup):
		return "the token is another node's"
	case counts["group"] == 1 && (m.Group == "" || !w.has("system:bootstrappers:muster:group:"+m.Group)):
		return "the token is another group's"
	case counts["pattern"] == 1 && m.NodeName != nodeA:
		return "the token is for other names"
	}
	if inBinding {
		b := w.policy.Bootstrap.Bindings[0]
		switch {
		case len(b.NodeNames) > 0 && (b.NodeNames[0] == "worker-*" || m.NodeName != nodeA):
			return "the token is bound to other names"
		case len(b.MachineGroups) > 0 && m.Group != "workers":
			return "the token is bound to another group"
		}
	}
	return ""
}

func (w *world) wrongForExisting(m policy.Machine) string {
	f := w.facts
	counts, _, readable := w.bindings()
	rejoins := w.isToken() && readable && counts["rejoin"] == 1
	if rejoins && !w.has("system:bootstrappers:muster:rejoin:"+strings.ReplaceAll(m.NodeName, ".", ":")) {
		return "the token is for another node to join again"
	}
	if _, person := w.approved(); person {
		return ""
	}
	switch {
	case absent(f.Node), usable(f.Node) && !f.Node.Value:
		return ""
	case !usable(f.Node):
		return "nobody knows whether the node exists"
	case rejoins && usable(f.Expired) && f.Expired.Value:
		return ""
	case rejoins:
		return "the node may have a certificate that is good"
	case !usable(f.LastMachine), f.LastMachine.Value == "":
		return "nobody knows which machine the node was"
	case strings.TrimPrefix(string(f.LastMachine.Value), "test|") == m.ID, strings.HasPrefix(string(f.LastMachine.Value), "other|"):
		return "the node exists, and nobody says that it was replaced"
	}
	return ""
}

func (w *world) wrongNames(m policy.Machine, names []string) string {
	own := append([]string{m.NodeName}, m.Names...)
	for _, a := range m.Addresses {
		own = append(own, a.String())
	}
	for _, n := range names {
		if _, err := netip.ParseAddr(n); err != nil && n != m.NodeName && !absent(w.facts.Nodes[n]) && (!usable(w.facts.Nodes[n]) || w.facts.Nodes[n].Value) {
			return n + " may be another node's"
		}
		o := w.facts.Owners[n]
		if ip, err := netip.ParseAddr(n); err == nil && !slices.Contains(own, n) && len(m.Ranges) > 0 && m.Ranges[0].Contains(ip) {
			if !usable(o) || !slices.Contains(o.Value, m.ID) {
				return n + " may be another machine's own"
			}
			continue
		}
		if !slices.Contains(own, n) {
			return n + " is not the machine's"
		}
		if !usable(o) || !slices.Equal(o.Value, []string{m.ID}) {
			return n + " may be another machine's, too"
		}
	}
	return ""
}
