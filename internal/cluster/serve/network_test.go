// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/cluster/region"
	"muster.dev/muster/internal/cluster/vpc"
	"muster.dev/muster/internal/platform/statedir"
)

// Each cluster has an address of its own in the default VPC, and keeps it; the VPC is described once.
func TestEndpointsInTheDefaultVPC(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	own, err := region.Find("eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := defaultVPC(dir, "192.168.64.0/18", own)
	if err != nil {
		t.Fatal(err)
	}
	if again, cidr, err := defaultVPC(dir, "10.0.0.0/16", own); err != nil || again != id || cidr != "192.168.64.0/18" {
		t.Errorf("it is %s, and then %s with the range %s: %v", id, again, cidr, err)
	}
	cluster := func(name string, n int) component.Config {
		c := component.Config{Account: component.Account{State: dir, VPC: true, VPCID: id, VPCCIDR: "192.168.64.0/18"}, Dir: dir.Cluster(v1alpha1.ClusterSlug(name))}
		c.Cluster.Name, c.Cluster.Spec.Name = v1alpha1.ClusterSlug(name), name
		c.Cluster.Spec.Network.PodCIDR = fmt.Sprintf("10.%d.0.0/16", 100+n)
		c.Ports.APIServer = 20000 + n
		return c
	}
	for range 2 {
		for n, want := range []string{"192.168.64.2", "192.168.64.4", "192.168.64.5", "192.168.64.6"} {
			if got, err := endpointInVPC(cluster(fmt.Sprintf("C_%d", n), n)); err != nil || got.String() != want {
				t.Errorf("cluster %d has %s, %v; want %s", n, got, err, want)
			}
		}
	}
	if _, err := endpointInVPC(cluster("more", 9)); err == nil || !strings.Contains(err.Error(), "finding an address for the API server in the VPC") {
		t.Errorf("a fifth cluster: %v", err)
	}
	network, err := vpc.OpenDefault(dir.VPCs())
	if err != nil {
		t.Fatal(err)
	}
	endpoints, err := network.Endpoints()
	if err != nil {
		t.Fatal(err)
	}
	for n, e := range endpoints { // machines say the same name of the cluster that they are for (Machine.spec.clusterName)
		if want := fmt.Sprintf("C_%d", n); e.Cluster != want || e.EgressSocket != dir.EgressSocket(v1alpha1.ClusterSlug(want)) {
			t.Errorf("endpoint %d is of %s at %s", n, e.Cluster, e.EgressSocket)
		}
	}
	if err := network.RemoveEndpoint("C_2"); err != nil {
		t.Fatal(err)
	}
	same := cluster("same", 1) // whose pods have the addresses of another's
	same.Ports.APIServer = 20009
	if _, err := endpointInVPC(same); err == nil || !strings.Contains(err.Error(), "podCIDR") {
		t.Errorf("a cluster with another's pod range: %v", err)
	}
	simulated := same
	simulated.VPC = false
	if got, err := endpointInVPC(simulated); err != nil || got != netip.MustParseAddr("192.168.64.2") {
		t.Errorf("without a VPC: %s, %v", got, err)
	}

	subnets, err := subnetsOf(dir)()
	if err != nil || len(subnets) != 1 || subnets[0].VPC != id || subnets[0].Zone != "eu-west-1a" || subnets[0].CIDR.String() != "192.168.64.0/18" {
		t.Fatalf("subnets: %+v, %v", subnets, err)
	}
	if err := removeVPCs(dir); err != nil {
		t.Fatal(err)
	}
	if all, err := vpc.List(dir.VPCs()); err != nil || len(all) > 0 {
		t.Errorf("left: %v, %v", all, err)
	}
}
