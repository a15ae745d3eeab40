// SPDX-License-Identifier: Apache-2.0

package networkrecord

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/network/clusternetwork"
	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/platform/statedir"
)

var comparePrefixes = cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})

// newAccount is an account with a default VPC, in a region.
func newAccount(t *testing.T) component.Account {
	t.Helper()
	dir := statedir.Dir(t.TempDir())
	own, err := region.Find("eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := DescribeDefault(dir, own, egresspolicy.NAT); err != nil {
		t.Fatal(err)
	}
	return component.Account{State: dir, VPC: true, Region: own}
}

// numbered is one of many clusters of an account.
func numbered(account component.Account, n int) component.Config {
	name := fmt.Sprintf("C_%d", n)
	c := component.Config{Account: account, Dir: account.State.Cluster(v1alpha1.ClusterSlug(name))}
	c.Cluster.Name, c.Cluster.Spec.Name = v1alpha1.ClusterSlug(name), name
	c.Cluster.Default()
	c.Places.Published = portplan.OnLoopback(20000 + n)
	return c
}

func hasDirectory(t *testing.T, c component.Config) component.Config {
	t.Helper()
	if err := os.MkdirAll(string(c.Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	return c
}

// A new account has a default VPC with a subnet in each zone; it is described once, and does not come back.
func TestDefaultVPC(t *testing.T) {
	account := newAccount(t)
	dir := account.State
	all, err := vpc.List(dir.VPCs())
	if err != nil || len(all) != 1 || !all[0].Default || all[0].CIDR.String() != "172.31.0.0/16" {
		t.Fatalf("%+v, %v", all, err)
	}
	got := map[string]string{}
	for _, subnet := range all[0].Subnets {
		got[subnet.Zone] = subnet.CIDR.String()
	}
	if diff := cmp.Diff(map[string]string{"eu-west-1a": "172.31.0.0/20", "eu-west-1b": "172.31.16.0/20", "eu-west-1c": "172.31.32.0/20"}, got); diff != "" {
		t.Error(diff)
	}
	if err := DescribeDefault(dir, account.Region, egresspolicy.NAT); err != nil {
		t.Fatal(err)
	}
	if again, err := vpc.List(dir.VPCs()); err != nil || len(again) != 1 || again[0].ID != all[0].ID {
		t.Errorf("described again: %+v, %v", again, err)
	}
	if err := os.MkdirAll(filepath.Join(dir.ManagementEtcd(), "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := vpc.Remove(dir.VPC(all[0].ID)); err != nil {
		t.Fatal(err)
	}
	if err := DescribeDefault(dir, account.Region, egresspolicy.NAT); err != nil {
		t.Fatal(err)
	}
	if again, err := vpc.List(dir.VPCs()); err != nil || len(again) != 0 {
		t.Errorf("a default VPC that was deleted came back: %+v, %v", again, err)
	}
	if err := RemoveVPCs(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir.VPCs()); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
}

// Clusters that start at once have addresses in two zones and a range of pods of their own, and keep them.
func TestNetworksOfClusters(t *testing.T) {
	account := newAccount(t)
	const count = 6
	found := make([]clusternetwork.Network, count)
	var group sync.WaitGroup
	for n := range count {
		c := hasDirectory(t, numbered(account, n))
		group.Go(func() {
			var err error
			if found[n], err = Ensure(c); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	addresses, pods := map[netip.Addr]bool{}, map[netip.Prefix]bool{}
	for n, network := range found {
		if len(network.Addresses) != 2 || len(network.Subnets) != 3 {
			t.Fatalf("cluster %d: %+v", n, network)
		}
		a, b := netip.MustParsePrefix("172.31.0.0/20"), netip.MustParsePrefix("172.31.16.0/20")
		if !a.Contains(network.Addresses[0]) || !b.Contains(network.Addresses[1]) {
			t.Errorf("cluster %d has %v", n, network.Addresses)
		}
		addresses[network.Addresses[0]], addresses[network.Addresses[1]], pods[network.PodCIDR] = true, true, true
		again, err := Ensure(numbered(account, n))
		if diff := cmp.Diff(network, again, comparePrefixes); diff != "" || err != nil {
			t.Errorf("cluster %d, later: %v\n%s", n, err, diff)
		}
	}
	if len(addresses) != 2*count || len(pods) != count {
		t.Errorf("%d addresses, %d ranges of pods", len(addresses), len(pods))
	}
	network, err := vpc.OpenDefault(account.State.VPCs())
	if err != nil {
		t.Fatal(err)
	}
	endpoints, err := network.Endpoints()
	if err != nil || len(endpoints) != count {
		t.Fatalf("%+v, %v", endpoints, err)
	}
	for n, e := range endpoints { // machines say the same name of the cluster that they are for (Machine.spec.clusterName)
		if want := fmt.Sprintf("C_%d", n); e.Cluster != want || e.EgressSocket != account.State.EgressSocket(v1alpha1.ClusterSlug(want)) || int(e.APIServer.Port()) != 20000+n {
			t.Errorf("endpoint %d is of %s at %s", n, e.Cluster, e.EgressSocket)
		}
	}

	// The first machine is not where an API server is.
	store, err := machine.NewStore(machine.StoreConfig{Dir: account.State.Machines(), Subnets: local.Subnets(account.State), Region: account.Region})
	if err != nil {
		t.Fatal(err)
	}
	record, err := store.Put("local", machine.LaunchRequest{ID: "i-0000000000000000a", SubnetID: found[0].Subnets[0].ID})
	if err != nil || addresses[record.PrivateIP] || record.PrivateIP.String() != "172.31.0.10" {
		t.Errorf("the first machine has %s, %v", record.PrivateIP, err)
	}

	if err := RemoveEndpoints(account.State, "C_2"); err != nil {
		t.Fatal(err)
	}
	if endpoints, err = network.Endpoints(); err != nil || len(endpoints) != count-1 {
		t.Errorf("after a cluster went: %+v, %v", endpoints, err)
	}
}

// The record alone is believed; without the record a cluster in use does not start.
func TestRecordOfANetwork(t *testing.T) {
	account := newAccount(t)
	c := hasDirectory(t, numbered(account, 1))
	before, err := Ensure(c)
	if err != nil {
		t.Fatal(err)
	}
	taken := hasDirectory(t, numbered(account, 2))
	taken.Cluster.Spec.Network.PodCIDR = before.PodCIDR.String()
	var p *clusternetwork.Problem
	if _, err := Ensure(taken); !errors.As(err, &p) || p.Reason != clusternetwork.ReasonPodRange {
		t.Errorf("a cluster with another's pods: %v", err)
	}
	if err := os.WriteFile(c.Dir.Network(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(c); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("a damaged record: %v", err)
	}
	if err := os.Remove(c.Dir.Network()); err != nil {
		t.Fatal(err)
	}
	after, err := Ensure(c)                                                             // as after a start that was cut short: the list of the VPC has it already
	if after.SecurityGroupID == "" || after.SecurityGroupID == before.SecurityGroupID { // nobody heard of the first one
		t.Errorf("the security group is %q, as it was %q", after.SecurityGroupID, before.SecurityGroupID)
	}
	after.SecurityGroupID = before.SecurityGroupID
	if diff := cmp.Diff(before, after, comparePrefixes); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if err := errors.Join(os.Remove(c.Dir.Network()), os.MkdirAll(filepath.Join(c.Dir.Etcd(), "member"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(c); err == nil || !strings.Contains(err.Error(), "restore the file from a backup") {
		t.Errorf("a cluster in use without its record: %v", err)
	}
}

// A network that an earlier Muster recorded gets a security group, once; a new cluster and a damaged record are left alone.
func TestConvert(t *testing.T) {
	c := hasDirectory(t, numbered(newAccount(t), 1))
	if convert, err := Convert(c.Dir); convert != nil || err != nil {
		t.Errorf("a cluster without a network: %v", err)
	}
	before, err := Ensure(c)
	if err != nil {
		t.Fatal(err)
	}
	if convert, err := Convert(c.Dir); convert != nil || err != nil {
		t.Errorf("a network with a security group: %v", err)
	}
	before.SecurityGroupID = ""
	if err := write(c.Dir, before); err != nil {
		t.Fatal(err)
	}
	convert, err := Convert(c.Dir)
	if err != nil || convert == nil {
		t.Fatalf("a network without a security group: %v", err)
	}
	if now, err := read(c.Dir); err != nil || now.SecurityGroupID != "" {
		t.Errorf("it is changed before it is to be: %+v, %v", now, err)
	}
	if err := convert(); err != nil {
		t.Fatal(err)
	}
	after, err := Ensure(c)
	if err != nil || !strings.HasPrefix(after.SecurityGroupID, "sg-") {
		t.Errorf("%q, %v", after.SecurityGroupID, err)
	}
	after.SecurityGroupID = ""
	if diff := cmp.Diff(before, after, comparePrefixes); diff != "" {
		t.Errorf("more was changed: %s", diff)
	}
	if err := os.WriteFile(c.Dir.Network(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Convert(c.Dir); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("a damaged record: %v", err)
	}
}

// A cluster keeps the subnets that it has for its pods, and takes no address of them for itself; one that was deleted
// meanwhile is refused.
func TestPodSubnetsOfCluster(t *testing.T) {
	account := newAccount(t)
	all, err := vpc.List(account.State.VPCs())
	if err != nil {
		t.Fatal(err)
	}
	main := all[0]
	c := hasDirectory(t, numbered(account, 1))
	for i, of := range main.Subnets {
		id := fmt.Sprintf("subnet-%017d", i)
		main.Subnets = append(main.Subnets, vpc.Subnet{ID: id, Zone: of.Zone, CIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, byte(64 + i), 0}), 24)})
		c.Cluster.Spec.Network.PodSubnetIDs = append(c.Cluster.Spec.Network.PodSubnetIDs, v1alpha1.SubnetID(id))
	}
	if err := vpc.Describe(account.State.VPCs(), main); err != nil {
		t.Fatal(err)
	}
	n, err := Ensure(c)
	if err != nil || len(n.Subnets) != 3 || len(n.PodSubnets) != 3 || !n.PodsInSubnets || n.Addresses[0].String() != "172.31.0.4" {
		t.Fatalf("%+v, %v", n, err)
	}
	again, err := Ensure(c)
	if diff := cmp.Diff(n, again, comparePrefixes); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	network, err := vpc.Open(account.State.VPCs(), n.VPCID)
	if err != nil {
		t.Fatal(err)
	}
	if endpoints, err := network.Endpoints(); err != nil || len(endpoints) != 1 || !slices.Equal(endpoints[0].PodSubnets, n.PodSubnetIDs()) {
		t.Errorf("%+v, %v", endpoints, err)
	}
	n.PodSubnets[1].ID = "subnet-00000000000000009"
	var p *clusternetwork.Problem
	if err := arePodSubnets(c, n); !errors.As(err, &p) || p.Reason != clusternetwork.ReasonNoSubnet || !strings.Contains(p.Message, "subnet-00000000000000009 was deleted") {
		t.Error(err)
	}
}

// A dry run shows what would be chosen, and chooses nothing.
func TestPlannedNetwork(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	own, err := region.Find("eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	c := numbered(component.Account{State: dir, VPC: true, Region: own}, 1)
	n, vpcs, err := Plan(dir, c)
	if err != nil || n.Addresses[0].String() != "172.31.0.4" || n.Addresses[1].String() != "172.31.16.4" || n.PodCIDR.String() != "10.244.0.0/16" || !n.PodsInSubnets ||
		len(vpcs) != 1 || vpcs[0].ID != "vpc-00000000000000000" {
		t.Errorf("%+v, %+v, %v", n, vpcs, err)
	}
	if _, err := os.Stat(dir.VPCs()); !os.IsNotExist(err) {
		t.Errorf("it made something: %v", err)
	}
	account := newAccount(t)
	c = hasDirectory(t, numbered(account, 1))
	kept, err := Ensure(c)
	if err != nil {
		t.Fatal(err)
	}
	n, _, err = Plan(account.State, c)
	if diff := cmp.Diff(kept, n, comparePrefixes); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}
