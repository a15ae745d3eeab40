// SPDX-License-Identifier: Apache-2.0

package vpccontroller

import (
	"net/netip"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/vpc"
)

// A subnet for pods stays while a cluster keeps it for its pods, and while pods of a machine have a range of it.
func TestPodSubnetsInUse(t *testing.T) {
	w := newWorld(t)
	w.vpc(one, "10.0.0.0/16", false)
	w.subnet(a, one, "10.0.0.0/20", "us-east-1a")
	w.subnet(b, one, "10.0.16.0/20", "us-east-1a")
	w.reconcile(one)
	if _, err := w.store.Put("local", machine.LaunchRequest{ID: machineA, SubnetID: a, Pods: 17, PodSubnetIDs: []string{b}}); err != nil {
		t.Fatal(err)
	}
	network, err := vpc.Open(w.root, one)
	if err != nil {
		t.Fatal(err)
	}
	if err := network.SetEndpoint(vpc.Endpoint{
		Cluster: "lab", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.4")}, APIServer: netip.MustParseAddrPort("127.0.0.1:1"), EgressSocket: "/x",
		PodCIDR: netip.MustParsePrefix("10.244.0.0/16"), PodSubnets: []string{b},
	}); err != nil {
		t.Fatal(err)
	}
	w.delete(&v1alpha1.Subnet{}, b)
	if result := w.reconcile(one); result.RequeueAfter != lookAgain {
		t.Errorf("looks again after %v", result.RequeueAfter)
	}
	w.says(&v1alpha1.Subnet{}, b, reasonInUse, "the pods of machine "+machineA+", cluster lab for its pods")
	if err := w.store.Delete(machineA); err != nil {
		t.Fatal(err)
	}
	w.reconcile(one)
	w.says(&v1alpha1.Subnet{}, b, reasonInUse, "any more: cluster lab for its pods")
	w.says(&v1alpha1.Subnet{}, a, reasonReady, "")
	if err := network.RemoveEndpoint("lab"); err != nil {
		t.Fatal(err)
	}
	w.reconcile(one)
	w.says(&v1alpha1.Subnet{}, b, "", "")
}
