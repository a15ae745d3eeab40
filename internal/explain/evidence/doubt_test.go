// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
)

// decided is the verdict about facts at noon, and the causes that are named.
func decided(t *testing.T, f diagnosis.Facts) (diagnosis.Verdict, []cause.ID) {
	t.Helper()
	catalogue, err := cause.Default()
	if err != nil {
		t.Fatal(err)
	}
	r := diagnosis.Decide(catalogue, f, noon)
	var ids []cause.ID
	for _, c := range r.Causes {
		ids = append(ids, c.Cause)
	}
	return r.Verdict, ids
}

func wantDecided(t *testing.T, what string, f diagnosis.Facts, verdict diagnosis.Verdict, want ...cause.ID) {
	t.Helper()
	if got, ids := decided(t, f); got != verdict || !slices.Equal(ids, want) {
		t.Errorf("%s: %s %v, want %s %v", what, got, ids, verdict, want)
	}
}

// A condition of whose kind nobody knows whether True is good says nothing: node-problem-detector's are good while False.
func TestConditionOfUnknownKind(t *testing.T) {
	t.Parallel()
	fine := newNode(corev1.NodeCondition{Type: "Ready", Status: "True"}, corev1.NodeCondition{Type: "KernelDeadlock", Status: "False", Reason: "KernelHasNoDeadlock"})
	s := snapshot(evidence.Cluster{Nodes: []corev1.Node{fine}})
	wantDecided(t, "a healthy machine", s.Machine(t.Context(), newMachine(condition("Ready", "True", "NodeReady", "")), nil), diagnosis.Healthy)
}

// A machine that stands still on purpose has no cause: its Node is silent, and its requests wait.
func TestStoppedMachineHasNoCause(t *testing.T) {
	t.Parallel()
	silent := newNode(corev1.NodeCondition{Type: "Ready", Status: "Unknown", Reason: "NodeStatusUnknown", LastTransitionTime: at(time.Hour)})
	s := snapshot(evidence.Cluster{Nodes: []corev1.Node{silent}})
	m := newMachine(condition("Ready", "False", "InstanceStopped", "the instance does not run"))
	m.Spec.PowerState = v1alpha1.PowerStopped
	wantDecided(t, "a stopped machine", s.Machine(t.Context(), m, nil), diagnosis.Healthy)
}

// Each machine begins as one whose instance does not run, and so does one that is started again.
func TestMachineThatStarts(t *testing.T) {
	t.Parallel()
	m := newMachine(condition("Ready", "False", "InstanceStopped", "the instance does not run"))
	m.CreationTimestamp, m.Status.Join = at(time.Second), nil
	wantDecided(t, "a machine of a second ago", snapshot(evidence.Cluster{}).Machine(t.Context(), m, nil), diagnosis.OnItsWay)
	m.CreationTimestamp = at(time.Hour)
	wantDecided(t, "a machine of an hour ago", snapshot(evidence.Cluster{}).Machine(t.Context(), m, nil), diagnosis.NotKnown)
}

// A machine that was Ready has as long as one that joins to become so again: it may reboot.
func TestMachineThatReboots(t *testing.T) {
	t.Parallel()
	m := newMachine(condition("Ready", "False", "NodeNotReady", "the node says: NodeStatusUnknown"))
	m.Status.Join = append(m.Status.Join, v1alpha1.JoinRecord{Step: v1alpha1.StepReady, Time: metav1.NewMicroTime(noon.Add(-50 * time.Minute))})
	s := snapshot(evidence.Cluster{})
	wantDecided(t, "not Ready since a minute", s.Machine(t.Context(), m, nil), diagnosis.OnItsWay)
	m.Status.Conditions[0].LastTransitionTime = at(10 * time.Minute)
	wantDecided(t, "not Ready since ten minutes", s.Machine(t.Context(), m, nil), diagnosis.NotKnown)
}

// A request of another node, or of a user who is none, in the name of a node says nothing about that node.
func TestRequestInAnothersName(t *testing.T) {
	t.Parallel()
	request := func(user, signer string) certificatesv1.CertificateSigningRequest {
		return certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "csr-1", CreationTimestamp: at(10 * time.Minute)},
			Spec:       certificatesv1.CertificateSigningRequestSpec{Request: pkitest.Kubelet(t, node), Username: user, SignerName: signer},
			Status:     certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue}}},
		}
	}
	const serving, kubelet = certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName
	for name, test := range map[string]struct {
		user, signer string
		causes       []cause.ID
	}{
		"its own":             {"system:node:" + node, serving, []cause.ID{"M-TLS-38"}},
		"its token's":         {"system:bootstrap:abcdef", kubelet, []cause.ID{"M-TLS-38"}},
		"another node's":      {"system:node:another", serving, nil},
		"another client's":    {"system:node:another", kubelet, nil},
		"a person's":          {"alice", kubelet, nil},
		"a token's, to serve": {"system:bootstrap:abcdef", serving, nil},
	} {
		s := snapshot(evidence.Cluster{Requests: []certificatesv1.CertificateSigningRequest{request(test.user, test.signer)}})
		verdict := diagnosis.Healthy
		if test.causes != nil {
			verdict = diagnosis.Found
		}
		wantDecided(t, name, s.Machine(t.Context(), newMachine(condition("Ready", "True", "NodeReady", "")), nil), verdict, test.causes...)
	}
}

// machineOf is one of the group default, whose Node has another name than those of the others.
func machineOf(name string, age time.Duration, conditions ...metav1.Condition) v1alpha1.Machine {
	m := newMachine(conditions...)
	m.Name, m.CreationTimestamp, m.Status.NodeName = name, at(age), "node-of-"+name
	m.Status.Join[0].Time = metav1.NewMicroTime(noon.Add(-age))
	return *m
}

// A trouble of one machine of a group hides nothing of another, and each has its own time.
func TestMachinesOfGroupAreTheirOwn(t *testing.T) {
	t.Parallel()
	refusedDial := condition("Ready", "False", "NotRegistered", "its last error: dial tcp 172.31.0.4:443: connect: connection refused")
	silent := newNode(corev1.NodeCondition{Type: "Ready", Status: "Unknown", Reason: "NodeStatusUnknown", LastTransitionTime: at(time.Hour)})
	silent.Name = "node-of-i-b"
	begins := newNode(corev1.NodeCondition{Type: "Ready", Status: "False", Reason: "KubeletNotReady", Message: "container runtime network not ready", LastTransitionTime: at(2 * time.Second)})
	begins.Name = "node-of-i-c"
	s := snapshot(evidence.Cluster{Nodes: []corev1.Node{silent, begins}})
	s.Machines = []v1alpha1.Machine{
		machineOf("i-a", time.Hour, refusedDial), machineOf("i-b", time.Hour, condition("Ready", "False", "NodeNotReady", "")),
		machineOf("i-c", 10*time.Second, condition("Ready", "False", "NodeNotReady", "")), machineOf("i-d", 10*time.Second, refusedDial),
	}
	s.Clusters = []v1alpha1.Cluster{{ObjectMeta: metav1.ObjectMeta{Namespace: "home"}, Spec: v1alpha1.ClusterSpec{Name: "home"}}}
	ready := condition("Ready", "False", "NodeCreationFailure", "i-a: x")
	ready.LastTransitionTime = at(time.Hour)
	wantDecided(t, "a group", s.Group(newGroup(ready)), diagnosis.Found, "M-NET-27", "M-READY-65")
	s.Machines = s.Machines[2:]
	wantDecided(t, "machines that have just begun", s.Group(newGroup(condition("Ready", "False", "Joining", ""))), diagnosis.OnItsWay)
}

// An update ends by itself, and may take long before: machines are drained one after the other, and those of Karpenter
// have hours to go back before their cluster.
func TestUpdateThatTakesLong(t *testing.T) {
	t.Parallel()
	s := snapshot(evidence.Cluster{})
	s.Groups = []v1alpha1.NodeGroup{*newGroup(condition("Ready", "True", "Ready", ""))}
	u := &v1alpha1.Update{
		ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "u", CreationTimestamp: at(3 * time.Hour)}, Spec: v1alpha1.UpdateSpec{ClusterName: "home", NodeGroup: "default"},
	}
	wantDecided(t, "an update of three hours", s.Update(u), diagnosis.OnItsWay)
	drained := condition("Drained", "False", "Draining", "The disruption budget a needs 1 healthy pods and has 1 currently")
	s.Machines = []v1alpha1.Machine{*newMachine(drained)}
	wantDecided(t, "a drain of a minute", s.Update(u), diagnosis.Found, "M-UPDATE-70")
	drained.LastTransitionTime = at(time.Second)
	s.Machines = []v1alpha1.Machine{*newMachine(drained)}
	wantDecided(t, "a drain of a second", s.Update(u), diagnosis.OnItsWay)
}

// stuck is an API server that accepts, and never answers.
type stuck struct{ client.Reader }

func (stuck) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// A cluster whose API server hangs holds the explanation up once, not for each kind.
func TestClusterThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := snapshot(evidence.Cluster{})
		s.ReadClusters(t.Context(), map[string]client.Reader{"home": stuck{}})
		if took := time.Since(begun); took > 10*time.Second || len(s.Of["home"].Unseen) != 3 {
			t.Errorf("it took %s: %+v", took, s.Of["home"])
		}
	})
}

// aLine are logs with one line of the kubelet's.
type aLine string

func (l aLine) Kubelet(context.Context, string, time.Time) ([]diagnosis.Evidence, error) {
	return []diagnosis.Evidence{{Source: cause.FromKubelet, Time: noon.Add(-time.Second), Text: string(l), Trouble: true}}, nil
}

func (aLine) Refused(context.Context, string, string, time.Time) ([]diagnosis.Evidence, error) {
	return nil, nil
}

func (aLine) Tokens(context.Context, string, string, time.Time) ([]diagnosis.Evidence, error) {
	return nil, nil
}

// A refused request for a certificate is about the token where the machine never had anything else, and nowhere else.
func TestRefusedBootstrapToken(t *testing.T) {
	t.Parallel()
	const refused = aLine(`E1120 11:59:59.000000 1 certificate_manager.go:596] "Failed while requesting a signed certificate from the control plane" err="cannot create certificate signing request: Unauthorized"`)
	byToken, had := newMachine(), newMachine()
	byToken.Spec.InstanceProfile, had.Spec.InstanceProfile = "", ""
	had.Status.Join = append(had.Status.Join, v1alpha1.JoinRecord{Step: v1alpha1.StepReady, Time: metav1.NewMicroTime(noon.Add(-time.Minute))})
	s := snapshot(evidence.Cluster{})
	wantDecided(t, "a token that is refused", s.Machine(t.Context(), byToken, refused), diagnosis.Found, "M-TLS-39")
	wantDecided(t, "a machine that had a certificate", s.Machine(t.Context(), had, refused), diagnosis.NotKnown)
	wantDecided(t, "a machine by its role", s.Machine(t.Context(), newMachine(), refused), diagnosis.NotKnown)
}
