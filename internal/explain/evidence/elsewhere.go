// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
)

// leaseStale is how much older than the newest one a Lease is that nobody renews: a kubelet renews its own every ten
// seconds, a leader every two (kubernetes, pkg/kubelet/apis/config; client-go, leaderelection).
const leaseStale = time.Minute

// Elsewhere is what is read of a cluster that is not of an installation of Muster's, besides its Nodes and requests.
type Elsewhere struct {
	Bindings []rbacv1.ClusterRoleBinding
	// Leases of nodes and of the leaders of the control plane.
	Nodes, Leaders []coordinationv1.Lease
	// TokenJoins reports whether nodes may be on their way that join by a bootstrap token: cluster-info is signed for one.
	TokenJoins bool
	// seen reports whether the bindings could be read.
	seen bool
	// nodesAt and allAt are the newest confirmed renewals of nodes' Leases and of all.
	nodesAt, allAt time.Time
}

// ReadElsewhere reads what a cluster elsewhere has besides its Nodes and requests, which were read before.
func (s *Snapshot) ReadElsewhere(ctx context.Context, name string, api client.Reader) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	c := s.Of[name]
	var bindings rbacv1.ClusterRoleBindingList
	var nodes, leaders coordinationv1.LeaseList
	unbound := read(ctx, api, &bindings)
	for _, one := range []struct {
		what string
		err  error
	}{
		{"the ClusterRoleBindings", unbound},
		{"the Leases of nodes", read(ctx, api, &nodes, client.InNamespace(corev1.NamespaceNodeLease))},
		{"the Leases of the control plane", read(ctx, api, &leaders, client.InNamespace("kube-system"))},
	} {
		if one.err != nil {
			c.Blind = append(c.Blind, diagnosis.Unseen{What: one.what + " of cluster " + name, Why: one.err.Error()})
		}
	}
	c.Elsewhere = &Elsewhere{Bindings: bindings.Items, Nodes: nodes.Items, Leaders: leaders.Items, seen: unbound == nil}
	c.Elsewhere.nodesAt = confirmedRenewal(nodes.Items, leaders.Items)
	c.Elsewhere.allAt = confirmedRenewal(slices.Concat(nodes.Items, leaders.Items), nil)
	var info corev1.ConfigMap
	if readOne(ctx, api, Place{Namespace: "kube-public", Name: "cluster-info"}, &info) == nil { // without one nobody joins by a token
		for key := range info.Data {
			c.Elsewhere.TokenJoins = c.Elsewhere.TokenJoins || strings.HasPrefix(key, "jws-kubeconfig-")
		}
	}
	if slices.ContainsFunc(c.Nodes, func(n corev1.Node) bool { return strings.Contains(n.Status.NodeInfo.KubeletVersion, "-eks-") }) {
		c.Blind = append(c.Blind, diagnosis.Unseen{What: "the access entries of cluster " + name, Why: "EKS's own API has them: aws eks list-access-entries"})
	}
	s.Of[name] = c
}

// ClusterElsewhere returns the facts of a cluster that is not of an installation of Muster's.
func (s *Snapshot) ClusterElsewhere(name string) diagnosis.Facts {
	c := s.Of[name]
	f := diagnosis.Facts{Kind: "cluster", Name: name, Healthy: true, Names: map[string]string{"$CLUSTER": name, "$NAME": name}, Evidence: slices.Clone(c.Configuration), Unseen: slices.Concat(c.Unseen, c.Blind)}
	e := c.Elsewhere
	if e == nil {
		return f
	}
	if e.seen && e.TokenJoins && !slices.ContainsFunc(e.Bindings, bindsBootstrappers) {
		f.Evidence = append(f.Evidence, diagnosis.Evidence{
			Source: cause.FromConfiguration, Object: "clusterrolebindings", Look: "kubectl get clusterrolebindings -o wide", Code: "Bootstrap/MayNotAsk", Trouble: true,
			Text: "there is a bootstrap token, and no ClusterRoleBinding gives system:bootstrappers, or a group in it, the ClusterRole " + roleBootstrapper,
		})
	}
	newest := e.allAt
	for _, l := range e.Leaders {
		leader := l.Name == "kube-controller-manager" || l.Name == "kube-scheduler"
		if at, stale := staleSince(l, newest); leader && stale {
			f.Evidence = append(f.Evidence, diagnosis.Evidence{
				Source: cause.FromConfiguration, Object: "lease/" + l.Name, Look: "kubectl get lease --namespace kube-system " + l.Name + " -o yaml", Time: at, Code: "Leader/Stale", Trouble: true,
				Text: fmt.Sprintf("the Lease of %s was renewed last at %s, and another of the cluster at %s", l.Name, at.Format(time.RFC3339), newest.Format(time.RFC3339)),
			})
		}
	}
	return f
}

// bindsBootstrappers reports whether a binding lets those ask for a certificate who come with a bootstrap token.
func bindsBootstrappers(b rbacv1.ClusterRoleBinding) bool {
	return b.RoleRef.Name == roleBootstrapper && slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.GroupKind && (strings.HasPrefix(s.Name, "system:bootstrappers") || s.Name == "system:authenticated")
	})
}

// confirmedRenewal is when the newest of Leases was renewed, of those that another of them, or one of others, was renewed at about
// the same time as; zero if there is none. Leases are compared with each other: the clock of this host may be another than
// that of the cluster. Each holder writes its own time, so that one clock that is ahead must not make all others look stopped.
func confirmedRenewal(leases, others []coordinationv1.Lease) time.Time {
	type renewal struct {
		at    time.Time
		other bool
	}
	var all []renewal
	for i, l := range slices.Concat(leases, others) {
		if l.Spec.RenewTime != nil {
			all = append(all, renewal{l.Spec.RenewTime.UTC(), i >= len(leases)})
		}
	}
	slices.SortFunc(all, func(a, b renewal) int { return b.at.Compare(a.at) })
	for i, r := range all {
		if !r.other && (i > 0 && all[i-1].at.Sub(r.at) <= leaseStale || i+1 < len(all) && r.at.Sub(all[i+1].at) <= leaseStale) {
			return r.at
		}
	}
	return time.Time{}
}

// staleSince is when a Lease was renewed last, if that is long before the newest.
func staleSince(l coordinationv1.Lease, newest time.Time) (time.Time, bool) {
	if l.Spec.RenewTime == nil {
		return time.Time{}, false
	}
	return l.Spec.RenewTime.UTC(), newest.Sub(l.Spec.RenewTime.Time) > leaseStale
}

// ofLease is the evidence in the Lease of a node elsewhere, which says so before its Node does.
func (c Cluster) ofLease(node string) []diagnosis.Evidence {
	if c.Elsewhere == nil {
		return nil
	}
	newest := c.Elsewhere.nodesAt
	for _, l := range c.Elsewhere.Nodes {
		if at, stale := staleSince(l, newest); l.Name == node && stale {
			return []diagnosis.Evidence{{
				Source: cause.FromNode, Object: "lease/" + node, Look: "kubectl get lease --namespace " + corev1.NamespaceNodeLease + " " + node + " -o yaml", Time: at, Code: "Lease/Stale", Trouble: true,
				Text: fmt.Sprintf("it was renewed last at %s, and the Lease of another node at %s", at.Format(time.RFC3339), newest.Format(time.RFC3339)),
			}}
		}
	}
	return nil
}

// ofApproval says that kube-controller-manager approves no request of its requester, for a request that waits elsewhere.
func (c Cluster) ofApproval(r csrview.Review, groups []string) []diagnosis.Evidence {
	if c.Elsewhere == nil || !c.Elsewhere.seen || r.State != csrview.Pending || r.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return nil
	}
	role := roleFirst
	if r.Requester.Username == r.Asked.CommonName {
		role = roleOwn
	}
	if bound(c.Elsewhere.Bindings, role, r.Requester.Username, groups) {
		return nil
	}
	return []diagnosis.Evidence{{
		Source: cause.FromConfiguration, Object: "csr/" + r.Name, Look: "kubectl get clusterrolebindings -o wide", Time: r.Created, Code: "Approval/NoBinding",
		Text: "no ClusterRoleBinding gives the requester, or a group of it, the ClusterRole " + role + ", for which kube-controller-manager approves requests",
	}}
}
