// SPDX-License-Identifier: Apache-2.0

package networkinterface

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/cloud/ec2/ec2resourcetest"
)

// Every filter is asked about the interface of a machine, of a machine without an address, and of API servers in a
// subnet and in no subnet.
func TestFilters(t *testing.T) {
	const vpc, subnet, group = "vpc-0000000000000000a", "subnet-0000000000000000a", "sg-0000000000000000a"
	launched := []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(time.Date(2026, 11, 22, 12, 0, 0, 5000, time.UTC))}}
	a := New(ec2resourcetest.New(t,
		&v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: vpc}, Spec: v1alpha1.VPCSpec{CIDRBlock: "10.0.0.0/16"}},
		&v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: subnet}, Spec: v1alpha1.SubnetSpec{VPCID: vpc, CIDRBlock: "10.0.0.0/24", AvailabilityZone: "eu-west-1a"}},
		&v1alpha1.SecurityGroup{ObjectMeta: metav1.ObjectMeta{Name: group}, Spec: v1alpha1.SecurityGroupSpec{VPCID: vpc, GroupName: "web"}},
		&v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: "i-0000000000000000a"},
			Spec:       v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal, SubnetID: subnet, SecurityGroupIDs: []string{group, "sg-0000000000000000b"}, DisableSourceCheck: true},
			Status: v1alpha1.MachineStatus{
				NodeName: "ip-10-0-0-5", Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}, Join: launched, PodCIDR: "10.0.0.16/28",
			},
		},
		&v1alpha1.Machine{ // in no subnet, before it has an address
			ObjectMeta: metav1.ObjectMeta{Name: "i-0000000000000000b"}, Spec: v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal},
		},
		&v1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "blue"}, Spec: v1alpha1.ClusterSpec{Name: "blue"},
			Status: v1alpha1.ClusterStatus{VPCID: vpc, ClusterSecurityGroupID: group, EndpointAddresses: []string{"10.0.0.9", "10.9.0.9", "none"}},
		}))
	all, err := a.Interfaces(t.Context(), &awsfront.Call{Caller: awsfronttest.Caller{}, Service: "ec2"})
	if err != nil || len(all) != 4 {
		t.Fatalf("%d interfaces, %v", len(all), err)
	}
	ec2resourcetest.Golden(t, "testdata/filters.txt", interfaceNoun(), all)
}
