// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

func csr(name, user string, status certificatesv1.CertificateSigningRequestStatus, groups ...string) client.Object {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "csr-uid"},
		Spec:       certificatesv1.CertificateSigningRequestSpec{Username: user, Groups: groups},
		Status:     status,
	}
}

func (w *world) csrs(t *testing.T) []string {
	t.Helper()
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := w.faults.off(func() error { return w.cluster.List(t.Context(), list) }); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	slices.Sort(names)
	return names
}

func pod(name, node string) client.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "pod-uid"}, Spec: corev1.PodSpec{NodeName: node}}
}

func (w *world) pods(t *testing.T) []string {
	t.Helper()
	list := &corev1.PodList{}
	if err := w.faults.off(func() error { return w.cluster.List(t.Context(), list) }); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	slices.Sort(names)
	return names
}

func (w *world) markDeleted(t *testing.T) {
	t.Helper()
	if err := w.faults.off(func() error { return w.management.Delete(t.Context(), newTestMachine()) }); err != nil {
		t.Fatal(err)
	}
}

// full is a world with a machine that has joined and everything of it that can be left over.
func full(t *testing.T) (*world, *machines) {
	t.Helper()
	w, r := joined(t)
	pending := certificatesv1.CertificateSigningRequestStatus{}
	denied := certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}}
	issued := certificatesv1.CertificateSigningRequestStatus{Certificate: []byte("x")}
	for _, object := range []client.Object{
		csr("mine-bootstrap", "system:bootstrap:abcdef", pending, "system:bootstrappers", v1alpha1.BootstrapGroupPrefix+id),
		csr("mine-serving", "system:node:"+nodeName, pending, "system:nodes"),
		csr("mine-denied", "system:node:"+nodeName, denied, "system:nodes"),
		csr("mine-issued", "system:node:"+nodeName, issued, "system:nodes"),
		csr("other-node", "system:node:ip-192-168-64-12.ec2.internal", pending, "system:nodes"),
		csr("other-group", "eve", pending, v1alpha1.BootstrapGroupPrefix+id),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef", Labels: map[string]string{v1alpha1.LabelMachine: id}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-others", Labels: map[string]string{v1alpha1.LabelMachine: "i-fffffffffffffffff"}}},
		pod("mine", nodeName), pod("others", "ip-192-168-64-12.ec2.internal"), pod("unbound", ""),
	} {
		if err := w.cluster.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	w.faults.calls = map[string]int{}
	return w, r
}

// nothingLeft checks that everything of the machine is gone, and nothing of others.
func nothingLeft(t *testing.T, w *world, when string) {
	t.Helper()
	if w.get(t, w.management, &v1alpha1.Machine{}, id) {
		t.Errorf("%s: the machine is left", when)
	}
	if w.get(t, w.cluster, &corev1.Node{}, nodeName) {
		t.Errorf("%s: the Node is left", when)
	}
	if got := w.csrs(t); !slices.Equal(got, []string{"mine-denied", "mine-issued", "other-group", "other-node"}) {
		t.Errorf("%s: CSRs %q", when, got)
	}
	if got := w.pods(t); !slices.Equal(got, []string{"others", "unbound"}) {
		t.Errorf("%s: pods %q", when, got)
	}
	if secrets := w.tokens(t); len(secrets) != 1 || secrets[0].Name != "bootstrap-token-others" {
		t.Errorf("%s: %d Secrets", when, len(secrets))
	}
	if len(w.provider.instances)+len(w.routes.set) != 0 {
		t.Errorf("%s: instances %v, routes %v", when, w.provider.instances, w.routes.set)
	}
}

func TestRemove(t *testing.T) {
	w, r := full(t)
	w.markDeleted(t)
	mustReconcile(t, r, id) // evicts
	mustReconcile(t, r, id)
	nothingLeft(t, w, "when its pods are gone")
}

// Each call on the way out fails once; trying again with a new reconciler, as after a crash, clears up all the same.
func TestRemoveEveryCallFails(t *testing.T) {
	for name, world := range map[string]func(*testing.T) (*world, *machines){"without volumes": full, "with volumes": mounting} {
		t.Run(name, func(t *testing.T) { removeEveryCallFails(t, world) })
	}
}

func removeEveryCallFails(t *testing.T, world func(*testing.T) (*world, *machines)) {
	t.Helper()
	clean, r := world(t)
	clean.markDeleted(t)
	mustReconcile(t, r, id)
	mustReconcile(t, r, id)
	calls := clean.faults.calls
	if len(calls) < 10 {
		t.Fatalf("calls: %v", calls)
	}
	for call, count := range calls {
		for nth := 1; nth <= count; nth++ {
			w, r := world(t)
			w.markDeleted(t)
			w.faults.fail(call, nth)
			_, first := reconcileOnce(t, r, id)
			if _, second := reconcileOnce(t, r, id); first == nil && second == nil {
				t.Errorf("%s, call %d, failed, and nobody heard of it", call, nth)
			}
			mustReconcile(t, w.machines(), id)
			nothingLeft(t, w, call)
		}
	}
}

// mounting is a full world whose Node has a volume.
func mounting(t *testing.T) (*world, *machines) {
	t.Helper()
	w, r := full(t)
	node := &corev1.Node{}
	w.get(t, w.cluster, node, nodeName)
	node.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/ebs.csi.aws.com^vol-1"}
	if err := w.faults.off(func() error { return w.cluster.Status().Update(t.Context(), node) }); err != nil {
		t.Fatal(err)
	}
	return w, r
}

// A Node with volumes stays until the instance has ended, and says that nothing is mounted before it goes:
// kube-controller-manager remembers that of a Node that is deleted.
func TestRemoveWithVolumes(t *testing.T) {
	w, r := mounting(t)
	var atEnd, atDelete *corev1.Node
	now := func() *corev1.Node {
		node := &corev1.Node{}
		w.get(t, w.cluster, node, nodeName)
		return node
	}
	w.provider.onEnd = func() { atEnd = now() }
	w.faults.before = func(call string) {
		if call == "cluster delete *v1.Node" && w.get(t, w.cluster, &corev1.Node{}, nodeName) {
			atDelete = now()
		}
	}
	w.markDeleted(t)
	mustReconcile(t, r, id)
	mustReconcile(t, r, id)
	nothingLeft(t, w, "with volumes")
	if atEnd == nil || len(atEnd.Status.VolumesInUse) != 1 || !atEnd.Spec.Unschedulable {
		t.Errorf("the Node as the instance ended: %+v", atEnd)
	}
	if atDelete == nil || len(atDelete.Status.VolumesInUse) != 0 {
		t.Errorf("the Node as it was deleted: %+v", atDelete)
	}
}

// Up to the last moment the machine goes on joining: its Node and a CSR appear while it is being terminated.
func TestRemoveWhileJoining(t *testing.T) {
	w, r := full(t)
	w.provider.onEnd = func() {
		w.addNode(t, corev1.ConditionFalse)
		late := csr("late", "system:bootstrap:abcdef", certificatesv1.CertificateSigningRequestStatus{}, v1alpha1.BootstrapGroupPrefix+id)
		if err := w.cluster.Create(t.Context(), late); err != nil {
			t.Fatal(err)
		}
	}
	w.markDeleted(t)
	mustReconcile(t, r, id)
	mustReconcile(t, r, id)
	nothingLeft(t, w, "while joining")
}

// The name is another machine's as soon as the instance is gone: that machine's Node stays.
func TestRemoveLeavesSuccessor(t *testing.T) {
	w, r := full(t)
	w.provider.onEnd = func() {
		successor := newTestNode(corev1.ConditionFalse)
		successor.Spec.ProviderID = v1alpha1.ProviderID("us-east-1a", "i-fffffffffffffffff")
		if err := w.cluster.Create(t.Context(), successor); err != nil {
			t.Fatal(err)
		}
	}
	w.markDeleted(t)
	mustReconcile(t, r, id)
	mustReconcile(t, r, id)
	if !w.get(t, w.cluster, &corev1.Node{}, nodeName) {
		t.Error("the Node of the machine that has the name now was removed")
	}
}

// The record of a machine is damaged, and its name was not written down: the machine goes all the same, and then its
// Node.
func TestRemoveWithADamagedRecordAndNoName(t *testing.T) {
	w := newWorld(t, newTestMachine())
	w.faults.fail("management update status *v1alpha1.Machine", 1)
	if _, err := reconcileOnce(t, w.machines(), id); err == nil {
		t.Fatal("no error")
	}
	w.addNode(t, corev1.ConditionTrue)
	w.provider.damaged = true
	w.markDeleted(t)
	mustReconcile(t, w.machines(), id)
	if w.get(t, w.management, &v1alpha1.Machine{}, id) || len(w.provider.instances) != 0 || len(w.tokens(t)) != 0 {
		t.Error("something is left")
	}
	for _, left := range w.nodeLeftBehind(t.Context(), newTestMachine()) {
		mustReconcile(t, &strangers{parts: w.parts}, left.Name)
	}
	if w.get(t, w.cluster, &corev1.Node{}, nodeName) {
		t.Error("the Node is left")
	}
}

// The service died between launching the instance and writing down its name.
func TestRemoveAfterCrash(t *testing.T) {
	w := newWorld(t, newTestMachine())
	w.faults.fail("management update status *v1alpha1.Machine", 1)
	if _, err := reconcileOnce(t, w.machines(), id); err == nil {
		t.Fatal("no error")
	}
	w.addNode(t, corev1.ConditionTrue)
	w.markDeleted(t)
	mustReconcile(t, w.machines(), id)
	if w.get(t, w.cluster, &corev1.Node{}, nodeName) || len(w.provider.instances) != 0 || len(w.tokens(t)) != 0 {
		t.Error("something is left")
	}
}
