// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/iam/refusalcause"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/plane/readiness"
)

const (
	// joinPatience is how long after its launch a machine may be on its way in without a cause: what package nodegroup
	// calls late.
	joinPatience = 3 * time.Minute
	// leavePatience is how long a machine may be on its way out: the time of EKS for a drain.
	leavePatience = 15 * time.Minute
)

// Machine returns the facts of a machine. Logs may be nil.
func (s *Snapshot) Machine(ctx context.Context, m *v1alpha1.Machine, logs Logs) diagnosis.Facts {
	f := s.machine(m)
	if logs != nil && !f.Healthy && !f.Idle {
		s.addLogs(ctx, &f, m, logs)
	}
	return f
}

// machine returns the facts of a machine by objects alone.
func (s *Snapshot) machine(m *v1alpha1.Machine) diagnosis.Facts {
	f := diagnosis.Facts{
		Kind: "machine", Name: m.Name, Names: names(m), ByRole: m.Spec.InstanceProfile != "", Since: m.StartedAt(), Patience: joinPatience,
		Steps: map[cause.Step]time.Time{}, Unseen: slices.Clone(s.Of[m.Spec.ClusterName].Unseen),
	}
	for _, record := range m.Status.Join {
		f.Steps[cause.Step(record.Step)] = record.Time.UTC()
	}
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	identity := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionIdentity)
	f.Healthy = ready != nil && ready.Status == metav1.ConditionTrue && (identity == nil || identity.Status != metav1.ConditionFalse)
	f.Idle = m.Spec.PowerState == v1alpha1.PowerStopped || m.Status.Phase.Warm()
	switch {
	case !m.DeletionTimestamp.IsZero():
		f.Since, f.Patience, f.Healthy = m.DeletionTimestamp.Time, leavePatience, false
	case ready != nil && ready.Reason == readiness.ReasonQueued:
		f.Since = s.At // it has not begun yet
	case !f.Healthy && ready != nil && joinlog.Has(m.Status.Join, v1alpha1.StepReady) && ready.LastTransitionTime.After(f.Since):
		f.Since = ready.LastTransitionTime.Time // it may reboot, and has to come forward anew
	}
	f.Evidence = ofConditions(m)
	if !f.Idle { // the Node of a machine that is to stand still is silent
		f.Evidence = append(f.Evidence, s.inCluster(m)...)
	}
	return f
}

// names fill in the fixes of a machine's causes.
func names(m *v1alpha1.Machine) map[string]string {
	return map[string]string{"$MACHINE": m.Name, "$NODE": m.Status.NodeName, "$GROUP": m.Spec.NodeGroup, "$CLUSTER": m.Spec.ClusterName, "$NAME": m.Name}
}

// inCluster returns the evidence that objects of its cluster have about a machine.
func (s *Snapshot) inCluster(m *v1alpha1.Machine) []diagnosis.Evidence {
	var evidence []diagnosis.Evidence
	if node := s.node(m); node != nil {
		evidence = append(evidence, ofNode(node)...)
	}
	return append(evidence, s.ofRequests(m)...)
}

// ofConditions returns the evidence in the conditions of a Machine.
func ofConditions(m *v1alpha1.Machine) []diagnosis.Evidence {
	var evidence []diagnosis.Evidence
	for _, c := range m.Status.Conditions {
		e := diagnosis.Evidence{
			Source: cause.FromMachine, Object: "machine/" + m.Name, Look: "muster get machine " + m.Name + " -o yaml",
			Time: c.LastTransitionTime.UTC(), Code: c.Type + "/" + c.Reason, Text: c.Message,
		}
		switch {
		case c.Status != metav1.ConditionFalse:
			continue
		case c.Type == v1alpha1.ConditionIdentity:
			e.Cause, e.Trouble = cause.ID(refusalcause.Read(c.Message)), true
		case c.Type == v1alpha1.ConditionDrained:
		case c.Type != v1alpha1.ConditionReady, c.Reason == "Refused": // the condition Identity says it
			continue
		case c.Reason == instanceStopped:
		case bootreport.IsReason(c.Reason):
			e.Source, e.Code, e.Trouble = cause.FromReport, c.Reason, true
			e.Look = "muster logs " + m.Name
		default:
			e.Trouble = readiness.KeptFrom(m) != "" && m.Spec.PowerState != v1alpha1.PowerStopped && !m.Status.Phase.Warm() && m.DeletionTimestamp.IsZero()
		}
		evidence = append(evidence, e)
	}
	return evidence
}

// instanceStopped is the reason of a machine before its instance runs: at its launch, and while it is started again. It
// is trouble if that lasts.
const instanceStopped = "InstanceStopped"

// badIfTrue are the conditions of a Node that are good while they are False (k8s.io/api, core/v1, NodeConditionType). Of
// v1alpha1.RepairConditions the reverse is so. Of others nobody knows: the conditions of node-problem-detector are good
// while they are False, and say nothing here.
var badIfTrue = []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable}

// ofNode returns the evidence of a Node: conditions that are bad, and the taint of a cloud provider that has not come.
func ofNode(node *corev1.Node) []diagnosis.Evidence {
	var evidence []diagnosis.Evidence
	look := "kubectl describe node " + node.Name
	for _, c := range node.Status.Conditions {
		good, known := corev1.ConditionTrue, slices.Contains(v1alpha1.RepairConditions(), string(c.Type))
		if slices.Contains(badIfTrue, c.Type) {
			good, known = corev1.ConditionFalse, true
		}
		if !known || c.Status == good {
			continue
		}
		evidence = append(evidence, diagnosis.Evidence{
			Source: cause.FromNode, Object: "node/" + node.Name, Look: look, Time: c.LastTransitionTime.UTC(),
			Code: string(c.Type) + "/" + c.Reason, Text: c.Message, Trouble: c.Type != corev1.NodeReady && c.Status != corev1.ConditionUnknown,
		})
	}
	for _, t := range node.Spec.Taints {
		if t.Key == taintUninitialized {
			evidence = append(evidence, diagnosis.Evidence{Source: cause.FromNode, Object: "node/" + node.Name, Look: look, Code: "Taint/" + t.Key, Text: t.ToString()})
		}
	}
	return evidence
}

// taintUninitialized is on a Node until its cloud provider has looked at it (k8s.io/cloud-provider/api).
const taintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// ofRequests returns the evidence of the newest certificate signing request of a machine, for each signer.
func (s *Snapshot) ofRequests(m *v1alpha1.Machine) []diagnosis.Evidence {
	var evidence []diagnosis.Evidence
	reviews := s.index(m.Spec.ClusterName).reviews[m.Status.NodeName]
	for _, signer := range slices.Sorted(maps.Keys(reviews)) {
		r := reviews[signer]
		if first(r) && joinlog.Has(m.Status.Join, v1alpha1.StepClientCSRIssued) { // it has one; somebody else asks in its name
			continue
		}
		if e, ok := ofReview(r); ok && !r.Created.Before(m.CreationTimestamp.Time) { // else of an earlier machine of that name
			evidence = append(evidence, e)
		}
	}
	return evidence
}

// ofReview returns the evidence of a request that was not issued.
func ofReview(r csrview.Review) (diagnosis.Evidence, bool) {
	e := diagnosis.Evidence{
		Source: cause.FromRequest, Object: "csr/" + r.Name, Look: "muster csr explain " + r.Name, Time: r.Created,
		Code: string(r.State) + "/" + string(r.Rule), Text: r.Why,
	}
	e.Trouble = r.State == csrview.Denied || r.State == csrview.Failed
	return e, r.State != csrview.Issued
}

// addLogs adds what the logs of this host say of a machine.
func (s *Snapshot) addLogs(ctx context.Context, f *diagnosis.Facts, m *v1alpha1.Machine, logs Logs) {
	since := s.At.Add(-diagnosis.Recent)
	add := func(what string, read func() ([]diagnosis.Evidence, error)) {
		evidence, err := read()
		if err != nil {
			f.Unseen = append(f.Unseen, diagnosis.Unseen{What: what, Why: err.Error()})
		}
		f.Evidence = append(f.Evidence, evidence...)
	}
	if m.Spec.Provider.Can(v1alpha1.KeepLogs) {
		add("the kubelet's log of "+m.Name, func() ([]diagnosis.Evidence, error) {
			lines, err := logs.Kubelet(ctx, m.Name, since)
			return ofFirstRequest(m, lines), err
		})
	} else {
		f.Unseen = append(f.Unseen, diagnosis.Unseen{What: "the kubelet's log of " + m.Name, Why: string(m.Spec.Provider) + " machines keep no logs"})
	}
	if m.Status.NodeName != "" {
		add("the audit log of cluster "+m.Spec.ClusterName, func() ([]diagnosis.Evidence, error) {
			return logs.Refused(ctx, m.Spec.ClusterName, m.Status.NodeName, since)
		})
	}
	if identity := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionIdentity); identity == nil || identity.Status != metav1.ConditionFalse {
		add("the authenticator's log of cluster "+m.Spec.ClusterName, func() ([]diagnosis.Evidence, error) { // the condition says it at once
			return logs.Tokens(ctx, m.Spec.ClusterName, m.Name, since)
		})
	}
}

// requestRefused is what the kubelet logs if it may not ask for a certificate (client-go, util/certificate/csr), and
// codeUnauthorized the code of that.
const (
	requestRefused   = "cannot create certificate signing request: Unauthorized"
	codeUnauthorized = "Bootstrap/Unauthorized"
)

// ofFirstRequest gives a code to the lines of a kubelet's log that are about its token: a machine that comes without a role,
// and never had a certificate, has nothing else to prove itself by.
func ofFirstRequest(m *v1alpha1.Machine, lines []diagnosis.Evidence) []diagnosis.Evidence {
	if m.Spec.InstanceProfile != "" || joinlog.Has(m.Status.Join, v1alpha1.StepClientCSRCreated) || joinlog.Has(m.Status.Join, v1alpha1.StepReady) {
		return lines
	}
	for i := range lines {
		if strings.Contains(lines[i].Text, requestRefused) {
			lines[i].Code = codeUnauthorized
		}
	}
	return lines
}
