// SPDX-License-Identifier: Apache-2.0

package balancerstore

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/statedir"
)

// A cluster that has all the balancers that it may have gets no more; its balancers go on, and so do other clusters.
func TestBalancersOfAClusterAreBounded(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	const id = "vpc-0123456789abcdef0"
	if err := vpc.Describe(dir.VPCs(), vpc.Description{ID: id, CIDR: netip.MustParsePrefix("10.9.0.0/16"), Subnets: []vpc.Subnet{
		{ID: "subnet-0123456789abcdef0", Zone: "us-east-1a", CIDR: netip.MustParsePrefix("10.9.0.0/20")},
	}}); err != nil {
		t.Fatal(err)
	}
	network, err := vpc.Open(dir.VPCs(), id)
	if err != nil {
		t.Fatal(err)
	}
	for n := range loadbalancer.MaxPerCluster {
		name := fmt.Sprint("s", n)
		if err := network.SetBalancer(loadbalancer.Balancer{
			Cluster: "blue", Namespace: "shop", Service: name, UID: name, DNSName: name, Address: netip.AddrFrom4([4]byte{10, 9, 1, byte(n)}),
		}); err != nil {
			t.Fatal(err)
		}
	}
	ensure := func(cluster, uid string) error {
		config := component.Config{Account: component.Account{State: dir}}
		config.Cluster.Spec.Name = cluster
		b := New(none).Of(config, network, nil)
		_, err := b.Ensure(loadbalancer.Service{Namespace: "shop", Name: uid, UID: uid}, loadbalancer.Spec{Internal: true})
		return err
	}
	if err := ensure("blue", "one more"); !errors.Is(err, loadbalancer.ErrTooMany) {
		t.Errorf("one more: %v", err)
	}
	if err := ensure("blue", "s7"); errors.Is(err, loadbalancer.ErrTooMany) {
		t.Errorf("one that is there: %v", err)
	}
	// It has no subnets here, so that is what it fails by.
	if err := ensure("green", "first"); !errors.Is(err, loadbalancer.ErrNoAddress) {
		t.Errorf("another cluster's: %v", err)
	}
	if err := network.RemoveBalancers(func(o loadbalancer.Balancer) bool { return o.UID == "s7" }); err != nil {
		t.Fatal(err)
	}
	if err := ensure("blue", "one more"); !errors.Is(err, loadbalancer.ErrNoAddress) {
		t.Errorf("after one has gone: %v", err)
	}
}
