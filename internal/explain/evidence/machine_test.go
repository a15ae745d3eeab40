// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const (
	id   = "i-0123456789abcdef0"
	node = "ip-172-31-0-5.ec2.internal"
)

func at(ago time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-ago)) }

// condition is one of a status, with a reason and a message, since a minute.
func condition(kind, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: at(time.Minute)}
}

// newMachine is one that was launched an hour ago.
func newMachine(conditions ...metav1.Condition) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: id, CreationTimestamp: at(time.Hour)},
		Spec:       v1alpha1.MachineSpec{ClusterName: "home", NodeGroup: "default", Provider: v1alpha1.ProviderLocal, InstanceProfile: "p"},
		Status: v1alpha1.MachineStatus{
			Phase: v1alpha1.MachineJoining, NodeName: node, Conditions: conditions,
			Join: []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(noon.Add(-time.Hour))}},
		},
	}
}

func newNode(conditions ...corev1.NodeCondition) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, CreationTimestamp: at(time.Hour)}, Status: corev1.NodeStatus{Conditions: conditions}}
}

func snapshot(of evidence.Cluster) *evidence.Snapshot {
	return &evidence.Snapshot{At: noon, Of: map[string]evidence.Cluster{"home": of}}
}

// said is evidence in a line: source, code, cause, trouble.
func said(all []diagnosis.Evidence) []string {
	var lines []string
	for _, e := range all {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %v", e.Source, e.Code, e.Cause, e.Trouble)))
	}
	return lines
}

func TestMachine(t *testing.T) {
	t.Parallel()
	refused := "the cluster does not let the machine in: refused by rule no-entry (M-IAM-01): r is in no access entry; make one"
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		node       []corev1.NodeCondition
		want       []string
		healthy    bool
	}{
		"nothing is known":        {nil, nil, nil, false},
		"Ready":                   {[]metav1.Condition{condition("Ready", "True", "NodeReady", "")}, nil, nil, true},
		"on its way":              {[]metav1.Condition{condition("Ready", "False", "Joining", "")}, nil, []string{"machine Ready/Joining  false"}, false},
		"refused":                 {[]metav1.Condition{condition("Ready", "False", "Refused", refused), condition("Identity", "False", "Refused", refused)}, nil, []string{"machine Identity/Refused M-IAM-01 true"}, false},
		"Ready and refused":       {[]metav1.Condition{condition("Ready", "True", "NodeReady", ""), condition("Identity", "False", "Refused", refused)}, nil, []string{"machine Identity/Refused M-IAM-01 true"}, false},
		"whether it is let in":    {[]metav1.Condition{condition("Identity", "Unknown", "NotSeen", "")}, nil, nil, false},
		"what it reports":         {[]metav1.Condition{condition("Ready", "False", "UserDataFailed", refused)}, nil, []string{"report UserDataFailed  true"}, false},
		"what its provider says":  {[]metav1.Condition{condition("Ready", "False", "LaunchFailed", "no room")}, nil, []string{"machine Ready/LaunchFailed  true"}, false},
		"its pods do not go":      {[]metav1.Condition{condition("Drained", "False", "Draining", "")}, nil, []string{"machine Drained/Draining  false"}, false},
		"its Node is silent":      {nil, []corev1.NodeCondition{{Type: "Ready", Status: "Unknown", Reason: "NodeStatusUnknown"}, {Type: "DiskPressure", Status: "Unknown"}}, []string{"node Ready/NodeStatusUnknown  false", "node DiskPressure/  false"}, false},
		"its Node's disk is full": {nil, []corev1.NodeCondition{{Type: "Ready", Status: "True"}, {Type: "DiskPressure", Status: "True", Reason: "KubeletHasDiskPressure"}, {Type: "MemoryPressure", Status: "False"}}, []string{"node DiskPressure/KubeletHasDiskPressure  true"}, false},
		"its kernel is not":       {nil, []corev1.NodeCondition{{Type: "KernelReady", Status: "False", Reason: "ForkFailedOutOfPIDs"}}, []string{"node KernelReady/ForkFailedOutOfPIDs  true"}, false},
	} {
		var of evidence.Cluster
		if test.node != nil {
			of.Nodes = []corev1.Node{newNode(test.node...)}
		}
		f := snapshot(of).Machine(t.Context(), newMachine(test.conditions...), nil)
		if got := said(f.Evidence); !slices.Equal(got, test.want) || f.Healthy != test.healthy {
			t.Errorf("%s: healthy %v, %q, want %q", name, f.Healthy, got, test.want)
		}
	}
}

// A machine whose report claims a cause is not believed: the identifier counts from those alone that decide.
func TestReportIsNoIdentifier(t *testing.T) {
	t.Parallel()
	m := newMachine(condition("Ready", "False", "BootFailed", "refused by rule no-entry (M-IAM-01): x"))
	for _, e := range snapshot(evidence.Cluster{}).Machine(t.Context(), m, nil).Evidence {
		if e.Cause != "" {
			t.Errorf("%+v", e)
		}
	}
}

// The steps whose times a Machine has are among the fifteen.
func TestJoinStepsAreSteps(t *testing.T) {
	t.Parallel()
	for _, step := range v1alpha1.JoinSteps() {
		if cause.Step(step).Order() == 0 {
			t.Errorf("%s is none of the fifteen", step)
		}
		if !cause.Step(step).Recorded() {
			t.Errorf("%s is recorded", step)
		}
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	s := snapshot(evidence.Cluster{})
	stopped := newMachine(condition("Ready", "False", "Stopped", "it is stopped"))
	stopped.Spec.PowerState = v1alpha1.PowerStopped
	warm := newMachine(condition("Ready", "False", "Warmed", "it waits"))
	warm.Status.Phase = v1alpha1.MachineWarmRunning
	for _, m := range []*v1alpha1.Machine{stopped, warm} {
		if f := s.Machine(t.Context(), m, nil); !f.Idle || slices.ContainsFunc(f.Evidence, func(e diagnosis.Evidence) bool { return e.Trouble }) {
			t.Errorf("%+v", f)
		}
	}
	queued := newMachine(condition("Ready", "False", "Queued", "others boot first"))
	if f := s.Machine(t.Context(), queued, nil); !f.Since.Equal(noon) {
		t.Errorf("a machine that waits for its turn began at %s", f.Since)
	}
	leaving := newMachine()
	now := at(time.Minute)
	leaving.DeletionTimestamp = &now
	if f := s.Machine(t.Context(), leaving, nil); f.Healthy || !f.Since.Equal(now.Time) || f.Patience < 10*time.Minute {
		t.Errorf("%+v", f)
	}
}

// failing are logs that cannot be read, but for one.
type failing struct{ asked []string }

func (l *failing) Kubelet(_ context.Context, machine string, since time.Time) ([]diagnosis.Evidence, error) {
	l.asked = append(l.asked, machine+since.Format(time.TimeOnly))
	return []diagnosis.Evidence{{Source: cause.FromKubelet}}, nil
}

func (l *failing) Refused(context.Context, string, string, time.Time) ([]diagnosis.Evidence, error) {
	return nil, errors.New("no such file")
}

func (l *failing) Tokens(context.Context, string, string, time.Time) ([]diagnosis.Evidence, error) {
	return nil, errors.New("not allowed")
}

func TestLogsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	logs := &failing{}
	f := snapshot(evidence.Cluster{Unseen: []diagnosis.Unseen{{What: "the Nodes", Why: "down"}}}).Machine(t.Context(), newMachine(), logs)
	if len(f.Unseen) != 3 || f.Unseen[1].Why != "no such file" || len(f.Evidence) != 1 || len(logs.asked) != 1 || logs.asked[0] != id+"11:59:00" {
		t.Errorf("%+v, asked %q", f, logs.asked)
	}
	logs.asked = nil
	ready := newMachine(condition("Ready", "True", "NodeReady", ""))
	if snapshot(evidence.Cluster{}).Machine(t.Context(), ready, logs); len(logs.asked) > 0 {
		t.Error("the log of a machine was read that is Ready")
	}
}

func TestReadAndReadCluster(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme, certificatesv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	n := newNode()
	api := func(fails string) client.Reader {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(newMachine(), &n).WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if strings.HasPrefix(fmt.Sprintf("%T", list), fails) {
					return errors.New("down")
				}
				return c.List(ctx, list, opts...)
			},
		}).Build()
	}
	s, err := evidence.Read(t.Context(), api("none"), noon)
	if err != nil || len(s.Machines) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, err := evidence.Read(t.Context(), api("*v1alpha1.Update"), noon); err == nil || !strings.Contains(err.Error(), "Updates") {
		t.Errorf("without Updates: %v", err)
	}
	s.ReadClusters(t.Context(), map[string]client.Reader{"home": api("*v1.CertificateSigningRequest")})
	if of := s.Of["home"]; len(of.Nodes) != 1 || len(of.Unseen) != 1 || !strings.Contains(of.Unseen[0].What, "certificate") {
		t.Errorf("%+v", of)
	}
	s.Missed("away", errors.New("down"))
	if of := s.Of["away"]; len(of.Unseen) != 1 || of.Unseen[0].Why != "down" {
		t.Errorf("%+v", of)
	}
}
