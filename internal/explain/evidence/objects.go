// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/machine/repair"
	"muster.dev/muster/internal/plane/readiness"
)

const (
	// groupPatience is how long a node group may be without its size: the time in which EKS expects a machine to join.
	groupPatience = repair.JoinPatience
	// clusterPatience is how long a cluster may take to be Ready.
	clusterPatience = 5 * time.Minute
	// updatePatience is how long an update may take: as long as package updatecontroller does not let it fail, which is
	// hours for a rollout, and for machines of Karpenter that go back.
	updatePatience = math.MaxInt64
	// requestPatience is how long a request may be without a verdict: many times what the certificate controller takes.
	requestPatience = 30 * time.Second
)

// repeats are the reasons of node groups whose message is that of one of the machines.
var repeats = map[string]bool{"NodeCreationFailure": true, "AccessDenied": true}

// Group returns the facts of a node group, and of its machines as its parts, as far as objects have them.
func (s *Snapshot) Group(g *v1alpha1.NodeGroup) diagnosis.Facts {
	cluster := s.clusterOf(g.Namespace)
	f := diagnosis.Facts{
		Kind: "nodegroup", Name: g.Spec.Name, Since: g.CreationTimestamp.Time, Patience: groupPatience, Unseen: s.Of[cluster].Unseen,
		Names: map[string]string{"$GROUP": g.Spec.Name, "$CLUSTER": cluster, "$NAME": g.Spec.Name},
	}
	ready := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil {
		f.Since = ready.LastTransitionTime.Time
	}
	held := g.Status.Repair != nil && repair.Paused(g.Status.Repair.HeldReason)
	f.Healthy = ready != nil && ready.Status == metav1.ConditionTrue && !held
	f.Evidence = ofGroup(g, ready)
	for _, m := range s.of(g) {
		if stopped := m.Spec.PowerState == v1alpha1.PowerStopped || m.Status.Phase.Warm(); stopped {
			continue
		}
		f.Parts = append(f.Parts, s.machine(m))
	}
	return f
}

// ofGroup returns the evidence that a node group has itself.
func ofGroup(g *v1alpha1.NodeGroup, ready *metav1.Condition) []diagnosis.Evidence {
	var evidence []diagnosis.Evidence
	e := diagnosis.Evidence{Source: cause.FromGroup, Object: "nodegroup/" + g.Spec.Name, Look: "muster get nodegroup " + g.Spec.Name + " -o yaml"}
	if obstacle := readiness.Obstacle(g); ready != nil && obstacle != "" {
		own := e
		own.Time, own.Code, own.Text, own.Trouble = ready.LastTransitionTime.UTC(), "Ready/"+ready.Reason, obstacle, !repeats[ready.Reason]
		evidence = append(evidence, own)
	}
	if r := g.Status.Repair; r != nil && r.HeldReason != "" {
		own := e
		own.Code, own.Text, own.Trouble = "Repair/"+r.HeldReason, r.HeldMessage, repair.Paused(r.HeldReason)
		evidence = append(evidence, own)
	}
	return evidence
}

// ClusterFacts returns the facts of a cluster.
func (s *Snapshot) ClusterFacts(c *v1alpha1.Cluster) diagnosis.Facts {
	f := diagnosis.Facts{
		Kind: "cluster", Name: c.Spec.Name, Since: c.CreationTimestamp.Time, Patience: clusterPatience, Unseen: slices.Concat(s.Of[c.Spec.Name].Unseen, s.Of[c.Spec.Name].Blind),
		Names: map[string]string{"$CLUSTER": c.Spec.Name, "$NAME": c.Spec.Name},
	}
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return f
	}
	f.Since, f.Healthy = ready.LastTransitionTime.Time, ready.Status == metav1.ConditionTrue
	f.Evidence = slices.Clone(s.Of[c.Spec.Name].Configuration)
	if limit := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionAPIServerMemoryLimited); !f.Healthy && limit != nil && limit.Status == metav1.ConditionTrue {
		f.Evidence = append(f.Evidence, diagnosis.Evidence{
			Source: cause.FromCluster, Object: "cluster/" + c.Spec.Name, Look: "muster get cluster " + c.Spec.Name + " -o yaml", Code: limit.Type + "/" + limit.Reason, Text: limit.Message,
		})
	}
	if !f.Healthy {
		f.Evidence = append(f.Evidence, diagnosis.Evidence{
			Source: cause.FromCluster, Object: "cluster/" + c.Spec.Name, Look: "muster get cluster " + c.Spec.Name + " -o yaml", Time: ready.LastTransitionTime.UTC(),
			Code: "Ready/" + ready.Reason, Text: ready.Message, Trouble: ready.Reason != readiness.ReasonCreating && c.DeletionTimestamp.IsZero(),
		})
	}
	return f
}

// Update returns the facts of an update. The update of a node group has the evidence of the group's machines that are drained.
func (s *Snapshot) Update(u *v1alpha1.Update) diagnosis.Facts {
	f := diagnosis.Facts{
		Kind: "update", Name: u.Name, Since: u.CreationTimestamp.Time, Patience: updatePatience,
		Names:   map[string]string{"$GROUP": u.Spec.NodeGroup, "$CLUSTER": u.Spec.ClusterName, "$NAME": u.Name},
		Healthy: u.Phase() == v1alpha1.UpdateSuccessful || u.Phase() == v1alpha1.UpdateCancelled,
	}
	e := diagnosis.Evidence{Source: cause.FromUpdate, Object: "update/" + u.Name, Look: "muster get update " + u.Name + " -o yaml"}
	if u.Status.FinishedAt != nil {
		e.Time = u.Status.FinishedAt.UTC()
	}
	for _, failed := range u.Status.Errors {
		one := e
		one.Code, one.Text, one.Trouble = failed.ErrorCode, failed.ErrorMessage, true
		f.Evidence = append(f.Evidence, one)
	}
	if u.Phase() != v1alpha1.UpdateInProgress || u.Spec.NodeGroup == "" {
		return f
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		if g.Namespace != u.Namespace || g.Spec.Name != u.Spec.NodeGroup {
			continue
		}
		for _, m := range s.of(g) {
			f.Evidence = append(f.Evidence, ofConditions(m)...)
		}
	}
	return f
}

// Request returns the facts of a certificate signing request of a cluster.
func (s *Snapshot) Request(cluster, name string) (diagnosis.Facts, bool) {
	requests := s.Of[cluster].Requests
	for i := range requests {
		if requests[i].Name != name {
			continue
		}
		r := csrview.Of(&requests[i], s.Of[cluster].Events[name])
		f := diagnosis.Facts{
			Kind: "csr", Name: name, Since: r.Created, Patience: requestPatience, Healthy: r.State == csrview.Issued, Unseen: s.Of[cluster].Unseen,
			Names: map[string]string{"$CLUSTER": cluster, "$NAME": name},
		}
		if e, ok := ofReview(r); ok {
			f.Evidence = append(f.Evidence, e)
		}
		f.Evidence = append(f.Evidence, s.Of[cluster].ofApproval(r, requests[i].Spec.Groups)...)
		return f, true
	}
	return diagnosis.Facts{}, false
}

// Node returns the facts of a Node that is of no machine of the account, such as that of a host that joined.
func (s *Snapshot) Node(cluster string, n *corev1.Node) diagnosis.Facts {
	f := diagnosis.Facts{
		Kind: "node", Name: n.Name, Since: n.CreationTimestamp.Time, Patience: joinPatience, Unseen: slices.Clone(s.Of[cluster].Unseen),
		Names: map[string]string{"$NODE": n.Name, "$CLUSTER": cluster, "$NAME": n.Name}, Evidence: append(ofNode(n), s.Of[cluster].ofLease(n.Name)...),
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			f.Healthy = c.Status == corev1.ConditionTrue
			if c.LastTransitionTime.After(f.Since) {
				f.Since = c.LastTransitionTime.Time
			}
		}
	}
	f.Unseen = append(f.Unseen, diagnosis.Unseen{What: "what runs on " + n.Name, Why: "it is no machine of this account"})
	return f
}
