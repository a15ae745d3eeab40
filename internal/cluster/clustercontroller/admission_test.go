// SPDX-License-Identifier: Apache-2.0

package clustercontroller

import (
	"errors"
	"os"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/network/clusternetwork"
	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/platform/statedir"
)

// Clusters are admitted by the state directory of an account: with its default VPC, without one, and with a directory in
// the place of a file.
func TestAdmit(t *testing.T) {
	own, err := region.Find("eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name         string
		change       func(*component.Config)
		bare         bool   // an account without a default VPC
		reason, says string // of the refusal; empty if the cluster is admitted
	}{
		{"as it is made", func(*component.Config) {}, false, "", ""},
		{"a name that is none", func(c *component.Config) { c.Cluster.Spec.Name = "a b" }, false, readiness.ReasonInvalidSpec, "spec.name"},
		{"both invalid and of no version", func(c *component.Config) { c.Cluster.Spec.Name, c.Cluster.Spec.Version = "a b", "v1.20.1" }, false, readiness.ReasonInvalidSpec, "spec.name"},
		{"a version of the past", func(c *component.Config) { c.Cluster.Spec.Version = "v1.20.1" }, false, readiness.ReasonUnsupportedVersion, "spec.version: "},
		{"a version that is not built", func(c *component.Config) { c.Cluster.Spec.Version = "1.37" }, false, readiness.ReasonUnsupportedVersion, "spec.version: Kubernetes 1.37 is not built here: run `make kubernetes MINOR=1.37`"},
		{"no default VPC", func(*component.Config) {}, true, clusternetwork.ReasonNoDefault, "the account has no default VPC: name the subnets that the cluster is in"},
		{"a subnet that is not there", func(c *component.Config) {
			c.Cluster.Spec.Network.SubnetIDs = []v1alpha1.SubnetID{"subnet-0123456789abcdef0", "subnet-0123456789abcdef1"}
		}, false, clusternetwork.ReasonNoSubnet, `the subnet "subnet-0123456789abcdef0" does not exist, or is not Ready`},
		{"services in the VPC", func(c *component.Config) { c.Cluster.Spec.Network.ServiceCIDR = "172.31.0.0/20" }, false, clusternetwork.ReasonPodRange, "spec.network.serviceCIDR 172.31.0.0/20 overlaps 172.31.0.0/16"},
		{"pods in the VPC", func(c *component.Config) { c.Cluster.Spec.Network.PodCIDR = "172.31.0.0/16" }, false, clusternetwork.ReasonPodRange, "spec.network.podCIDR 172.31.0.0/16 overlaps"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := statedir.Dir(t.TempDir())
			if !c.bare {
				if err := networkrecord.DescribeDefault(state, own, egresspolicy.NAT); err != nil {
					t.Fatal(err)
				}
			}
			config := component.Config{Account: component.Account{State: state, VPC: true, Region: own}, Dir: state.Cluster("blue")}
			config.Cluster.Name, config.Cluster.Spec.Name = "blue", "blue"
			config.Cluster.Default()
			c.change(&config)
			err := Admit(config)
			refusal, refused := errors.AsType[*Refusal](err)
			switch {
			case c.reason == "" && err != nil, c.reason != "" && !refused:
				t.Fatalf("%v, want a refusal for %q", err, c.reason)
			case refused && (refusal.Reason != c.reason || !strings.Contains(refusal.Message, c.says)):
				t.Errorf("%s: %s, want %s: %s", refusal.Reason, refusal.Message, c.reason, c.says)
			}
		})
	}
}

// A state directory that cannot be read is the host's failure, and no refusal of the cluster.
func TestAdmitWithoutAState(t *testing.T) {
	state := statedir.Dir(t.TempDir())
	if err := os.WriteFile(state.VPCs(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	config := component.Config{Account: component.Account{State: state, VPC: true}, Dir: state.Cluster("blue")}
	config.Cluster.Name, config.Cluster.Spec.Name = "blue", "blue"
	config.Cluster.Default()
	err := Admit(config)
	if _, refused := errors.AsType[*Refusal](err); err == nil || refused {
		t.Errorf("%v (%T)", err, err)
	}
}
