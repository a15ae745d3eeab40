// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/explain/evidence"
)

func newGroup(ready metav1.Condition) *v1alpha1.NodeGroup {
	return &v1alpha1.NodeGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "default", CreationTimestamp: at(time.Hour)},
		Spec:       v1alpha1.NodeGroupSpec{Name: "default"}, Status: v1alpha1.NodeGroupStatus{Conditions: []metav1.Condition{ready}},
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	s := snapshot(evidence.Cluster{})
	s.Clusters = []v1alpha1.Cluster{{ObjectMeta: metav1.ObjectMeta{Namespace: "home"}, Spec: v1alpha1.ClusterSpec{Name: "home"}}}
	s.Machines = []v1alpha1.Machine{*newMachine(condition("Ready", "False", "UserDataFailed", "x")), *newMachine(condition("Ready", "False", "DiskFull", "x"))}
	s.Machines[1].Spec.NodeGroup = "other"
	for name, test := range map[string]struct {
		ready   metav1.Condition
		held    string
		want    []string
		healthy bool
	}{
		"Ready":            {condition("Ready", "True", "Ready", ""), "", []string{"report UserDataFailed  true"}, true},
		"scaling":          {condition("Ready", "False", "Scaling", "1 of 2"), "", []string{"report UserDataFailed  true"}, false},
		"of its machines":  {condition("Ready", "False", "NodeCreationFailure", "i-1: x"), "", []string{"node-group Ready/NodeCreationFailure  false", "report UserDataFailed  true"}, false},
		"of its own":       {condition("Ready", "False", "IamNodeRoleNotFound", "no role"), "", []string{"node-group Ready/IamNodeRoleNotFound  true", "report UserDataFailed  true"}, false},
		"repairs are held": {condition("Ready", "True", "Ready", ""), "TooManyUnhealthy", []string{"node-group Repair/TooManyUnhealthy  true", "report UserDataFailed  true"}, false},
		"repairs go on":    {condition("Ready", "True", "Ready", ""), "Busy", []string{"node-group Repair/Busy  false", "report UserDataFailed  true"}, true},
	} {
		g := newGroup(test.ready)
		if test.held != "" {
			g.Status.Repair = &v1alpha1.NodeGroupRepairStatus{HeldReason: test.held}
		}
		f := s.Group(g)
		all := f.Evidence
		for _, part := range f.Parts {
			all = append(all, part.Evidence...)
		}
		if !slices.Equal(said(all), test.want) || f.Healthy != test.healthy || f.Names["$CLUSTER"] != "home" {
			t.Errorf("%s: healthy %v, %q", name, f.Healthy, said(all))
		}
	}
}

func TestClusterFacts(t *testing.T) {
	t.Parallel()
	s := snapshot(evidence.Cluster{})
	c := &v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{Name: "home"}}
	if f := s.ClusterFacts(c); f.Healthy || len(f.Evidence) > 0 {
		t.Errorf("of a cluster that nothing is known of: %+v", f)
	}
	for reason, want := range map[string]string{"Creating": "cluster Ready/Creating  false", "Unhealthy": "cluster Ready/Unhealthy  true", "InsufficientMemory": "cluster Ready/InsufficientMemory  true"} {
		c.Status.Conditions = []metav1.Condition{condition("Ready", "False", reason, "x")}
		if f := s.ClusterFacts(c); f.Healthy || len(f.Evidence) != 1 || said(f.Evidence)[0] != want {
			t.Errorf("%s: %q", reason, said(f.Evidence))
		}
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	s := snapshot(evidence.Cluster{})
	s.Groups = []v1alpha1.NodeGroup{*newGroup(condition("Ready", "True", "Ready", ""))}
	s.Machines = []v1alpha1.Machine{*newMachine(condition("Drained", "False", "Draining", "x"))}
	u := &v1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "u"}, Spec: v1alpha1.UpdateSpec{ClusterName: "home", NodeGroup: "default"}}
	if f := s.Update(u); f.Healthy || !slices.Equal(said(f.Evidence), []string{"machine Drained/Draining  false"}) {
		t.Errorf("in progress: %q", said(f.Evidence))
	}
	u.Status.Phase = v1alpha1.UpdateFailed
	u.Status.Errors = []v1alpha1.UpdateError{{ErrorCode: "NodeCreationFailure", ErrorMessage: "x"}}
	if f := s.Update(u); f.Healthy || !slices.Equal(said(f.Evidence), []string{"update NodeCreationFailure  true"}) {
		t.Errorf("failed: %q", said(f.Evidence))
	}
	u.Status = v1alpha1.UpdateStatus{Phase: v1alpha1.UpdateSuccessful}
	if f := s.Update(u); !f.Healthy || len(f.Evidence) > 0 {
		t.Errorf("successful: %+v", f)
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	pending := certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "pending", CreationTimestamp: at(time.Minute)}}
	denied := *pending.DeepCopy()
	denied.Name = "denied"
	denied.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Message: "no"}}
	s := snapshot(evidence.Cluster{Requests: []certificatesv1.CertificateSigningRequest{pending, denied}})
	for name, want := range map[string]string{"pending": "csr Pending/  false", "denied": "csr Denied/  true"} {
		f, ok := s.Request("home", name)
		if !ok || f.Healthy || !slices.Equal(said(f.Evidence), []string{want}) {
			t.Errorf("%s: %v %q", name, ok, said(f.Evidence))
		}
	}
	if _, ok := s.Request("home", "gone"); ok {
		t.Error("a request was found that is not there")
	}
}

func TestNode(t *testing.T) {
	t.Parallel()
	n := newNode(corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", LastTransitionTime: at(time.Second)})
	n.Spec.Taints = []corev1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: "NoSchedule"}, {Key: "other"}}
	f := snapshot(evidence.Cluster{}).Node("home", &n)
	want := []string{"node Ready/KubeletNotReady  false", "node Taint/node.cloudprovider.kubernetes.io/uninitialized  false"}
	if f.Healthy || !slices.Equal(said(f.Evidence), want) || !f.Since.Equal(noon.Add(-time.Second)) || len(f.Unseen) != 1 {
		t.Errorf("%+v", f)
	}
}
