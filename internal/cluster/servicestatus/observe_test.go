// SPDX-License-Identifier: Apache-2.0

package servicestatus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
)

func condition(status metav1.ConditionStatus, message string) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Message: message}}
}

// objects are a cluster with two groups, of which one goes away, and their machines.
func objects() []client.Object {
	now, slug := metav1.Now(), v1alpha1.ClusterSlug("Blue")
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: slug, Name: slug}, Spec: v1alpha1.ClusterSpec{Name: "Blue"}, Status: v1alpha1.ClusterStatus{Version: "v1.36.3", Conditions: condition(metav1.ConditionTrue, "fine")}}
	other := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "another", Name: "another"}, Spec: v1alpha1.ClusterSpec{Name: "another"}, Status: v1alpha1.ClusterStatus{Version: "v0"}}
	group := &v1alpha1.NodeGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: slug, Name: "workers", Generation: 3},
		Spec:       v1alpha1.NodeGroupSpec{Name: "workers", Provider: v1alpha1.ProviderLocal, Isolation: v1alpha1.IsolationUserNamespace, ScalingConfig: v1alpha1.ScalingConfig{DesiredSize: 3}},
		Status:     v1alpha1.NodeGroupStatus{Version: "1.36", ObservedGeneration: 3, Replicas: 2, ReadyReplicas: 1, Conditions: condition(metav1.ConditionFalse, "2 of 3 machines")},
	}
	going := &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Namespace: slug, Name: "going", DeletionTimestamp: &now, Finalizers: []string{"x"}}}
	made := func(id, node string, phase v1alpha1.MachinePhase, steps ...v1alpha1.JoinStep) *v1alpha1.Machine {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.MachineSpec{ClusterName: "Blue", NodeGroup: "workers"}, Status: v1alpha1.MachineStatus{NodeName: node, Phase: phase}}
		if node != "" { // it has been launched
			m.Status.Isolation = v1alpha1.IsolationUserNamespace
		}
		for i, step := range steps {
			m.Status.Join = append(m.Status.Join, v1alpha1.JoinRecord{Step: step, Time: metav1.NewMicroTime(time.Unix(1000, 0).Add(time.Duration(i) * 100 * time.Millisecond))})
		}
		return m
	}
	// Objects of another cluster, and a group in a namespace without a cluster, are not told here.
	foreign := made("i-5", "ip-c", v1alpha1.MachineReady)
	foreign.Spec.ClusterName = "another"
	elsewhere := group.DeepCopy()
	elsewhere.Namespace, elsewhere.Generation = "another", 4
	before := made("i-4", "ip-a", v1alpha1.MachineReady, v1alpha1.StepLaunched, v1alpha1.StepAPIReached, v1alpha1.StepReady)
	before.Status.Isolation = v1alpha1.IsolationNone
	return []client.Object{
		cluster, other, group, going, foreign, elsewhere,
		made("i-2", "", v1alpha1.MachinePending),
		made("i-1", "", v1alpha1.MachinePending),
		made("i-3", "ip-b", v1alpha1.MachineJoining, v1alpha1.StepLaunched, v1alpha1.StepAPIReached),
		before,
	}
}

func fakeClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func TestObserve(t *testing.T) {
	status := Cluster{Name: "Blue"}
	if err := Observe(t.Context(), fakeClient(t, objects()...), &status); err != nil {
		t.Fatal(err)
	}
	want := Cluster{
		Settled: true, Name: "Blue", Version: "v1.36.3", Ready: true,
		NodeGroups: []NodeGroup{{Name: "workers", Provider: v1alpha1.ProviderLocal, Version: "1.36", Isolation: v1alpha1.IsolationUserNamespace, Desired: 3, Machines: 2, Ready: 1, Message: "2 of 3 machines"}},
		Machines: []Machine{
			{Name: "i-1", NodeGroup: "workers", Phase: v1alpha1.MachinePending},
			{Name: "i-2", NodeGroup: "workers", Phase: v1alpha1.MachinePending},
			{Name: "i-4", NodeGroup: "workers", NodeName: "ip-a", Isolation: v1alpha1.IsolationNone, Phase: v1alpha1.MachineReady, Step: v1alpha1.StepReady},
			{Name: "i-3", NodeGroup: "workers", NodeName: "ip-b", Isolation: v1alpha1.IsolationUserNamespace, Phase: v1alpha1.MachineJoining, Step: v1alpha1.StepAPIReached},
		},
		Notes: []string{"isolation user-namespace of node group workers does not hold for 1 of 4 machines, launched before it was set: root there is root on this host until the machine boots next, or for good if isolation none was asked for (`muster get machines -o wide` shows each, `muster delete machine NAME` replaces one)"},
	}
	if diff := cmp.Diff(want, status, cmpopts.IgnoreUnexported(Cluster{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNotSettled(t *testing.T) {
	nothing := Cluster{Settled: true}
	if err := Observe(t.Context(), fakeClient(t), &nothing); err != nil || nothing.Settled {
		t.Errorf("before the first objects: settled is %v, %v", nothing.Settled, err)
	}
	all := objects()
	all[2].SetGeneration(4)
	all[0].(*v1alpha1.Cluster).Status.Conditions = condition(metav1.ConditionFalse, "etcd is slow")
	behind := Cluster{Name: "Blue"}
	if err := Observe(t.Context(), fakeClient(t, all...), &behind); err != nil || behind.Settled {
		t.Errorf("a group that no controller has seen: settled is %v, %v", behind.Settled, err)
	}
	if behind.Ready || behind.Message != "etcd is slow" {
		t.Errorf("cluster is %+v", behind)
	}
}
