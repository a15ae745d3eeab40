// SPDX-License-Identifier: Apache-2.0

package securitygroupcontroller

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/securitygroup"
	"muster.dev/muster/internal/network/vpc"
)

const (
	one     = "vpc-0123456789abcdef0"
	two     = "vpc-0123456789abcdef1"
	web     = "sg-0000000000000000a"
	other   = "sg-0000000000000000b"
	cluster = "sg-0000000000000000c"
	subnet  = "subnet-0123456789abcdef0"
)

// world is a management plane, and networks that remember what is in force.
type world struct {
	*reconciler
	t     *testing.T
	force map[string]string // by VPC
	fail  error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.SecurityGroup{}, &v1alpha1.Cluster{}, &v1alpha1.Machine{}).Build()
	w := &world{t: t, force: map[string]string{}}
	w.reconciler = &reconciler{networks: w, api: api}
	return w
}

// Enforce implements Networks.
func (w *world) Enforce(id string, groups []securitygroup.Group, interfaces []vpc.Interface, endpoints map[string][]string) error {
	if w.fail != nil {
		return w.fail
	}
	var lines []string
	for _, group := range groups {
		for _, rule := range group.Rules {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %d-%d %s %s", group.ID, rule.Direction, rule.Protocol, rule.FromPort, rule.ToPort, rule.Group, strings.TrimPrefix(rule.CIDR.String(), "invalid Prefix"))))
		}
	}
	for _, i := range interfaces {
		lines = append(lines, fmt.Sprintf("%s %s %v", i.Machine, i.Address, i.SecurityGroups))
	}
	for name, in := range endpoints {
		lines = append(lines, fmt.Sprintf("cluster %s %v", name, in))
	}
	slices.Sort(lines)
	w.force[id] = strings.Join(lines, "\n")
	return nil
}

func (w *world) reconcile(id string) reconcile.Result {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: id}})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// says checks the condition of a group, or with an empty reason that it is gone.
func (w *world) says(name, reason, message string) {
	w.t.Helper()
	group := &v1alpha1.SecurityGroup{}
	err := w.api.Get(w.t.Context(), types.NamespacedName{Name: name}, group)
	if reason == "" {
		if !apierrors.IsNotFound(err) {
			w.t.Errorf("%s is there: %v", name, err)
		}
		return
	}
	if err != nil {
		w.t.Fatal(err)
	}
	condition := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionReady)
	if condition == nil || condition.Reason != reason || !strings.Contains(condition.Message, message) || (condition.Status == metav1.ConditionTrue) != (reason == reasonReady) {
		w.t.Errorf("%s says %+v, want %s: %s", name, condition, reason, message)
	}
}

func (w *world) isInForce(want ...string) {
	w.t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(strings.Join(want, "\n"), w.force[one]); diff != "" {
		w.t.Errorf("in force (-want +got):\n%s", diff)
	}
}

// removeCluster removes the cluster at once.
func (w *world) removeCluster() {
	w.t.Helper()
	gone := aCluster()
	if err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(gone), gone); err != nil {
		w.t.Fatal(err)
	}
	gone.Finalizers = nil
	if err := errors.Join(w.api.Update(w.t.Context(), gone), w.api.Delete(w.t.Context(), gone)); err != nil {
		w.t.Fatal(err)
	}
}

func aVPC() *v1alpha1.VPC {
	return &v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: one}, Spec: v1alpha1.VPCSpec{CIDRBlock: "10.0.0.0/16"}}
}

func aSubnet() *v1alpha1.Subnet {
	return &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: subnet}, Spec: v1alpha1.SubnetSpec{VPCID: one, CIDRBlock: "10.0.0.0/20"}}
}

func aGroup(id, vpcID string, rules ...v1alpha1.SecurityGroupRule) *v1alpha1.SecurityGroup {
	return &v1alpha1.SecurityGroup{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.SecurityGroupSpec{VPCID: vpcID, GroupName: id, Description: id, Rules: rules}}
}

func aCluster() *v1alpha1.Cluster {
	return &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "blue", Namespace: "blue", Finalizers: []string{v1alpha1.FinalizerCluster}}, Spec: v1alpha1.ClusterSpec{Name: "blue", SecurityGroupIDs: []string{other}},
		Status: v1alpha1.ClusterStatus{VPCID: one, ClusterSecurityGroupID: cluster},
	}
}

func aMachine(name, ip, clusterName, nodeGroup string, groups ...string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MachineSpec{ClusterName: clusterName, NodeGroup: nodeGroup, SubnetID: subnet, SecurityGroupIDs: groups},
		Status: v1alpha1.MachineStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: "x"}, {Type: corev1.NodeInternalIP, Address: ip}}},
	}
}

func port(n int32) v1alpha1.SecurityGroupRule {
	return v1alpha1.SecurityGroupRule{ID: fmt.Sprintf("sgr-%017d", n), Direction: v1alpha1.RuleIngress, Protocol: "tcp", FromPort: &n, ToPort: &n, CIDRIPv4: "10.0.0.0/8"}
}

func firstRules(id string) []string {
	return []string{id + " Ingress -1 0-0 " + id, id + " Egress -1 0-0  0.0.0.0/0"}
}

func TestGroupsInForce(t *testing.T) {
	standard := v1alpha1.DefaultSecurityGroupID(one)
	w := newWorld(t, aVPC(), aSubnet(), aCluster(),
		aGroup(web, one, port(80), v1alpha1.SecurityGroupRule{ID: "sgr-1", Direction: v1alpha1.RuleEgress, Protocol: v1alpha1.AllProtocols, CIDRIPv6: "::/0"}),
		aGroup("sg-0000000000000000f", two, port(81)),
		aMachine("i-1", "10.0.0.5", "blue", "default"), aMachine("i-2", "10.0.0.6", "blue", "default", web, other), aMachine("i-3", "10.0.0.7", "", ""),
		aMachine("i-4", "10.0.0.8", "green", "default"), aMachine("i-5", "", "blue", "default"))
	w.reconcile(one)
	w.reconcile(one)
	w.isInForce(append(append([]string{
		web + " Ingress tcp 80-80  10.0.0.0/8", "cluster blue [" + cluster + " " + other + "]",
		"i-1 10.0.0.5 [" + cluster + "]", "i-2 10.0.0.6 [" + web + " " + other + "]", "i-3 10.0.0.7 [" + standard + "]", "i-4 10.0.0.8 []",
	}, firstRules(cluster)...), firstRules(standard)...)...)
	for _, id := range []string{web, cluster, standard} {
		w.says(id, reasonReady, "in force")
	}
	var own v1alpha1.SecurityGroup
	if err := w.api.Get(t.Context(), types.NamespacedName{Name: cluster}, &own); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(own.Spec.GroupName, "eks-cluster-sg-blue-1") || own.Spec.Tags["kubernetes.io/cluster/blue"] != "owned" || string(own.Spec.Tags["Name"]) != own.Spec.GroupName || own.Spec.ClusterName != "blue" {
		t.Errorf("%+v", own.Spec)
	}
	// Its rules are people's; it is made once.
	own.Spec.Rules = nil
	if err := w.api.Update(t.Context(), &own); err != nil {
		t.Fatal(err)
	}
	w.reconcile(one)
	if strings.Contains(w.force[one], cluster+" Ingress") {
		t.Error(w.force[one])
	}
}

func TestGroupsThatAreDeleted(t *testing.T) {
	standard := v1alpha1.DefaultSecurityGroupID(one)
	machine := aMachine("i-1", "10.0.0.5", "blue", "default", web)
	w := newWorld(t, aVPC(), aSubnet(), aCluster(), machine, aGroup(web, one, port(80)), aGroup(other, one))
	w.reconcile(one)
	w.reconcile(one)
	for _, id := range []string{web, other, cluster, standard} {
		if err := w.api.Delete(t.Context(), aGroup(id, one)); err != nil {
			t.Fatal(err)
		}
	}
	if result := w.reconcile(one); result.RequeueAfter != lookAgain {
		t.Error("nobody looks again")
	}
	w.says(web, reasonInUse, "machine i-1")
	w.says(other, reasonInUse, "the API server of cluster blue")
	w.says(cluster, reasonCluster, "of cluster blue")
	w.says(standard, reasonDefault, "goes with it")
	if !strings.Contains(w.force[one], web+" Ingress tcp 80-80") || !strings.Contains(w.force[one], cluster+" Ingress") {
		t.Errorf("not in force any more:\n%s", w.force[one])
	}
	if err := w.api.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	w.reconcile(one)
	w.says(web, "", "")
	w.removeCluster()
	w.reconcile(one)
	w.says(cluster, "", "")
	w.says(other, "", "")
	w.isInForce(firstRules(standard)...)
	if err := w.api.Delete(t.Context(), aVPC()); err != nil {
		t.Fatal(err)
	}
	w.reconcile(one)
	w.says(standard, "", "")
}

// A cluster's group goes with the cluster, and a VPC's groups with the VPC.
func TestGroupsThatGoWithTheirs(t *testing.T) {
	w := newWorld(t, aVPC(), aCluster(), aGroup(web, one, port(80)))
	w.reconcile(one)
	w.reconcile(one)
	w.removeCluster()
	w.reconcile(one)
	w.reconcile(one)
	w.says(cluster, "", "")
	if err := w.api.Delete(t.Context(), aVPC()); err != nil {
		t.Fatal(err)
	}
	w.reconcile(one)
	w.reconcile(one)
	w.says(web, "", "")
	w.says(v1alpha1.DefaultSecurityGroupID(one), "", "")
}

func TestGroupsThatAreNotInForce(t *testing.T) {
	w := newWorld(t, aVPC(), aGroup(web, one, port(80)), aGroup(other, two))
	w.fail = fs.ErrNotExist
	if result := w.reconcile(one); result.RequeueAfter != lookAgain {
		t.Error("nobody looks whether the VPC is made")
	}
	w.says(web, reasonNoVPC, "not made yet")
	w.fail = errors.New("no nft")
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: one}}); !errors.Is(err, w.fail) {
		t.Errorf("%v is not tried again", err)
	}
	w.says(web, reasonFailed, "no nft")
	w.fail = nil
	w.reconcile(one)
	w.says(web, reasonReady, "in force")
	w.reconcile(two)
	w.says(other, reasonNoVPC, "there is no VPC "+two)
}

func TestWhoIsAsked(t *testing.T) {
	w := newWorld(t, aVPC(), aSubnet())
	lost := aMachine("i-1", "10.0.0.5", "blue", "default")
	lost.Spec.SubnetID = "subnet-gone"
	for name, got := range map[string][]reconcile.Request{
		"group":   ofGroup(t.Context(), aGroup(web, one)),
		"cluster": ofCluster(t.Context(), aCluster()),
		"machine": w.ofMachine(t.Context(), aMachine("i-1", "10.0.0.5", "blue", "default")),
		"lost":    w.ofMachine(t.Context(), lost),
	} {
		if diff := cmp.Diff(requests(one), got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	was, is := aMachine("i-1", "", "blue", "default"), aMachine("i-1", "10.0.0.5", "blue", "default")
	if !machineChanged(event.UpdateEvent{ObjectOld: was, ObjectNew: is}) || machineChanged(event.UpdateEvent{ObjectOld: is, ObjectNew: is}) {
		t.Error("an address is news, and nothing is not")
	}
	before, after := aCluster(), aCluster()
	after.Spec.SecurityGroupIDs = nil
	if !clusterChanged(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) || clusterChanged(event.UpdateEvent{ObjectOld: after, ObjectNew: after}) {
		t.Error("another group is news, and nothing is not")
	}
}
