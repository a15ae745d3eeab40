// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/clusternetwork"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
)

const (
	subnetA, subnetB = clusternetworktest.SubnetA, clusternetworktest.SubnetB
	// subnetC is of the cluster's VPC and not the cluster's.
	subnetC = "subnet-0123456789abcdefc"
)

// small has subnets with room for so many machines, beside one that another cluster has there.
func small(w *world, rooms map[string]int) {
	w.usage = nil
	for i, id := range []string{subnetA, subnetB, subnetC} {
		room, ok := rooms[id]
		if !ok {
			continue
		}
		usage := machine.Usage{
			Subnet:   machine.Subnet{ID: id, VPC: clusternetworktest.VPCID, Zone: "us-east-1" + string(id[len(id)-1]), CIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, byte(i << 4), 0}), 28)},
			Machines: []string{"i-0000000000000000f"},
		}
		for n := range 11 - room { // that machine and the endpoints of clusters have the others
			usage.Used = append(usage.Used, netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, byte(i << 4), byte(4 + n)}), 32))
		}
		w.usage = append(w.usage, usage)
	}
}

// placed counts the machines in each subnet.
func placed(t *testing.T, w *world) string {
	t.Helper()
	counts := map[v1alpha1.SubnetID]int{}
	for _, m := range w.list(t) {
		counts[m.Spec.SubnetID]++
	}
	var parts []string
	for _, id := range []v1alpha1.SubnetID{subnetA, subnetB, subnetC} {
		parts = append(parts, fmt.Sprint(counts[id]))
	}
	return strings.Join(parts, " ")
}

func TestPlacement(t *testing.T) {
	for name, test := range map[string]struct {
		rooms           map[string]int
		named           []v1alpha1.SubnetID
		desired         int32
		deleting        string
		shifted         []string
		want            string
		reason, message string
	}{
		"evenly":                     {rooms: map[string]int{subnetA: 9, subnetB: 9, subnetC: 9}, desired: 4, want: "2 2 0"},
		"a full one":                 {rooms: map[string]int{subnetA: 1, subnetB: 9}, desired: 4, want: "1 3 0"},
		"others than the cluster's":  {rooms: map[string]int{subnetA: 9, subnetB: 9, subnetC: 9}, named: []v1alpha1.SubnetID{subnetC, subnetA}, desired: 3, want: "2 0 1"},
		"not all":                    {rooms: map[string]int{subnetA: 1, subnetB: 1}, desired: 4, want: "1 1 0", reason: reasonFull, message: "2 more machines found no free address"},
		"none":                       {rooms: map[string]int{subnetA: 0, subnetB: 0}, desired: 2, want: "0 0 0", reason: reasonFull, message: "2 more machines"},
		"no such subnet":             {rooms: map[string]int{subnetA: 9, subnetB: 9}, named: []v1alpha1.SubnetID{subnetC}, desired: 1, want: "0 0 0", reason: reasonNoSubnet, message: subnetC},
		"one that is deleted":        {rooms: map[string]int{subnetA: 9, subnetB: 9}, deleting: subnetB, desired: 3, want: "3 0 0"},
		"a named one that is":        {rooms: map[string]int{subnetA: 9, subnetB: 9}, named: []v1alpha1.SubnetID{subnetB}, deleting: subnetB, desired: 1, want: "0 0 0", reason: reasonNoSubnet, message: "is being deleted"},
		"a zone that is shifted":     {rooms: map[string]int{subnetA: 9, subnetB: 9}, shifted: []string{"us-east-1a"}, desired: 3, want: "0 3 0"},
		"only that zone":             {rooms: map[string]int{subnetA: 9, subnetB: 9}, named: []v1alpha1.SubnetID{subnetA}, shifted: []string{"us-east-1a"}, desired: 1, want: "0 0 0", reason: reasonShifted, message: "cancel the shift"},
		"none of the cluster's left": {rooms: map[string]int{subnetC: 9}, desired: 1, want: "0 0 0", reason: reasonNoSubnet, message: "name others"},
	} {
		t.Run(name, func(t *testing.T) {
			group := newTestGroup(test.desired)
			group.Spec.SubnetIDs = test.named
			of := newTestCluster()
			of.Status.ShiftedZones = test.shifted
			w := newWorld(t, of, group)
			small(w, test.rooms)
			if test.deleting != "" {
				subnet := &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: test.deleting, Finalizers: []string{v1alpha1.FinalizerSubnet}}}
				if err := w.management.Create(t.Context(), subnet); err != nil {
					t.Fatal(err)
				}
				if err := w.management.Delete(t.Context(), subnet); err != nil {
					t.Fatal(err)
				}
			}
			r := w.groups()
			result, err := r.Reconcile(t.Context(), groupRequest("workers"))
			if err != nil {
				t.Fatal(err)
			}
			if got := placed(t, w); got != test.want {
				t.Errorf("machines are in %s, want %s", got, test.want)
			}
			if test.reason == "" {
				return
			}
			wantGroup(t, w.group(t), test.reason, test.message)
			if result.RequeueAfter != roomAgain {
				t.Errorf("it looks again after %s", result.RequeueAfter)
			}
			small(w, map[string]int{subnetA: 9, subnetB: 9, subnetC: 9}) // somebody made room, which nobody tells of
			if test.deleting != "" {
				return
			}
			if test.shifted != nil { // the shift is over
				w.shift(t)
			}
			mustReconcile(t, r, "workers")
			if got := len(w.list(t)); got != int(test.desired) {
				t.Errorf("%d machines when there is room, want %d", got, test.desired)
			}
		})
	}
}

// Where pods have subnets of their own, machines of a zone share what is left of them, and the one that has no room is
// named.
func TestPlacementOfPodsInOtherSubnets(t *testing.T) {
	const podsA, podsB = "subnet-000000000000000aa", "subnet-000000000000000bb"
	group := newTestGroup(9)
	group.Spec.SubnetIDs = []v1alpha1.SubnetID{subnetA, subnetB, subnetC}
	w := newWorld(t, newTestCluster(), group)
	w.Network.PodsInSubnets = true
	w.Network.PodSubnets = []clusternetwork.Subnet{{ID: podsA, Zone: "us-east-1a"}, {ID: podsB, Zone: "us-east-1b"}}
	w.UserData = func(*v1alpha1.Machine, string) ([]byte, error) {
		return []byte("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {maxPods: 17}}}\n"), nil
	}
	subnet := func(id, zone, cidr string) machine.Usage {
		return machine.Usage{Subnet: machine.Subnet{ID: id, VPC: clusternetworktest.VPCID, Zone: "us-east-1" + zone, CIDR: netip.MustParsePrefix(cidr)}}
	}
	w.usage = []machine.Usage{
		subnet(subnetA, "a", "172.31.0.0/28"), subnet(subnetB, "b", "172.31.16.0/28"), subnet(subnetC, "a", "172.31.32.0/28"),
		subnet(podsA, "a", "172.31.48.0/25"), subnet(podsB, "b", "172.31.64.0/26"),
	}
	for range 2 { // what was made a moment ago has no address yet, and counts
		if _, err := reconcileOnce(t, w.groups(), "workers"); err != nil {
			t.Fatal(err)
		}
		if got := placed(t, w); got != "2 1 1" { // three /27 of the one, one of the other
			t.Errorf("placed %s", got)
		}
	}
	condition := w.group(t).Status.Conditions[0]
	if condition.Reason != reasonFull || !strings.Contains(condition.Message, "5 more machines") || !strings.Contains(condition.Message, "no /27 for the addresses of 17 pods in "+podsA+", "+podsB+":") {
		t.Errorf("%s: %s", condition.Reason, condition.Message)
	}
	// A zone without a subnet for pods is refused, whatever else is named.
	w.Network.PodSubnets = w.Network.PodSubnets[1:]
	if _, err := reconcileOnce(t, w.groups(), "workers"); err != nil {
		t.Fatal(err)
	}
	condition = w.group(t).Status.Conditions[0]
	if want := "no subnet for pods in us-east-1a, the zone of " + subnetA + ": name subnets in us-east-1b"; condition.Reason != reasonPodZone || !strings.Contains(condition.Message, want) {
		t.Errorf("%s: %s", condition.Reason, condition.Message)
	}
	// Simulated machines have no pods there.
	w.Routes = nil
	if _, err := reconcileOnce(t, w.groups(), "workers"); err != nil {
		t.Fatal(err)
	}
	if got := len(w.list(t)); got != 9 {
		t.Errorf("%d machines", got)
	}
}

// What was made a moment ago and is not launched yet takes an address, too; what was launched is not counted twice.
func TestComing(t *testing.T) {
	usage := machine.Usage{Subnet: machine.Subnet{ID: subnetA}, Machines: []string{"i-1", "i-2"}}
	var all []v1alpha1.Machine
	for name, subnet := range map[string]v1alpha1.SubnetID{"i-2": subnetA, "i-3": subnetA, "i-4": subnetB} {
		all = append(all, v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MachineSpec{SubnetID: subnet}})
	}
	if got := coming(usage, all); got != 1 {
		t.Errorf("%d machines are coming", got)
	}
}

// Where pods have addresses of the subnet, a machine goes where there is a range for them, too.
func TestPlacementOfPods(t *testing.T) {
	group := newTestGroup(9)
	w := newWorld(t, newTestCluster(), group)
	w.Network.PodsInSubnets = true
	pods := 17
	w.UserData = func(*v1alpha1.Machine, string) ([]byte, error) {
		return fmt.Appendf(nil, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {maxPods: %d}}}\n", pods), nil
	}
	w.usage = []machine.Usage{
		{Subnet: machine.Subnet{ID: subnetA, VPC: clusternetworktest.VPCID, Zone: "us-east-1a", CIDR: netip.MustParsePrefix("172.31.0.0/25")}},
		{Subnet: machine.Subnet{ID: subnetB, VPC: clusternetworktest.VPCID, Zone: "us-east-1b", CIDR: netip.MustParsePrefix("172.31.16.0/26")}},
	}
	if _, err := reconcileOnce(t, w.groups(), "workers"); err != nil {
		t.Fatal(err)
	}
	if got := placed(t, w); got != "3 1 0" {
		t.Errorf("placed %s", got)
	}
	condition := w.group(t).Status.Conditions[0]
	if condition.Reason != reasonFull || !strings.Contains(condition.Message, "5 more machines") || !strings.Contains(condition.Message, "no /27 for the addresses of 17 pods") {
		t.Errorf("%s: %s", condition.Reason, condition.Message)
	}
	// What was made a moment ago has no address yet, and counts.
	if _, err := reconcileOnce(t, w.groups(), "workers"); err != nil {
		t.Fatal(err)
	}
	if got := placed(t, w); got != "3 1 0" {
		t.Errorf("then placed %s", got)
	}
	// Machines whose pods have a range of the cluster's need one address each.
	w.Network.PodsInSubnets = false
	if _, err := reconcileOnce(t, w.groups(), "workers"); err != nil {
		t.Fatal(err)
	}
	if got := len(w.list(t)); got != 9 {
		t.Errorf("%d machines", got)
	}
}
