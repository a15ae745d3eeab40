// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/cloud/ec2/ec2resourcetest"
	"muster.dev/muster/internal/cloud/ec2/image"
	"muster.dev/muster/internal/cloud/ec2/keypair"
	"muster.dev/muster/internal/cloud/ec2/template"
	"muster.dev/muster/internal/cloud/spotrequest"
)

// Every filter of instances and of their status is asked about an instance of a node group that runs, and about
// instances that lack what it has: an address, a known subnet, a known profile, groups.
func TestFilters(t *testing.T) {
	const vpc, subnet, group = "vpc-0000000000000000a", "subnet-0000000000000000a", "sg-0000000000000000a"
	at := metav1.NewMicroTime(time.Date(2026, 11, 22, 12, 0, 0, 5000, time.UTC))
	addresses := func(text string) []corev1.NodeAddress {
		return []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: text}}
	}
	launched := []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: at}}
	profile := &v1alpha1.IAMInstanceProfile{ObjectMeta: metav1.ObjectMeta{Name: "000000000000.node"}}
	profile.Spec.Name, profile.Spec.ARN, profile.Spec.ProfileID = "node", "arn:aws:iam::000000000000:instance-profile/of/node", "AIPAAAAAAAAAAAAAAAAAA"
	ended := metav1.NewTime(at.Add(time.Hour))
	ec2 := ec2resourcetest.New(t, profile,
		&v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: vpc}, Spec: v1alpha1.VPCSpec{CIDRBlock: "10.0.0.0/16"}},
		&v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: subnet}, Spec: v1alpha1.SubnetSpec{VPCID: vpc, CIDRBlock: "10.0.0.0/24", AvailabilityZone: "eu-west-1a"}},
		&v1alpha1.SecurityGroup{ObjectMeta: metav1.ObjectMeta{Name: group}, Spec: v1alpha1.SecurityGroupSpec{VPCID: vpc, GroupName: "web"}},
		&v1alpha1.Machine{ // of a node group, with everything
			ObjectMeta: metav1.ObjectMeta{Name: "i-0000000000000000a"},
			Spec: v1alpha1.MachineSpec{
				ClusterName: "blue", NodeGroup: "workers", Provider: v1alpha1.ProviderLocal, SubnetID: subnet, InstanceType: "m5.large", InstanceProfile: "node", KeyName: "key",
				SecurityGroupIDs: []string{group, "sg-0000000000000000b"},
			},
			Status: v1alpha1.MachineStatus{
				ProviderID: v1alpha1.ProviderID("eu-west-1a", "i-0000000000000000a"), NodeName: "ip-10-0-0-5", Addresses: addresses("10.0.0.5"), Join: launched, PodCIDR: "10.0.0.16/28",
			},
		},
		&v1alpha1.Machine{ // that waits for its launch: its group is known, and it has no network interface yet
			ObjectMeta: metav1.ObjectMeta{
				Name: "i-0000000000000000b", CreationTimestamp: metav1.NewTime(at.Time),
				Annotations: map[string]string{annotationToken: "token", annotationKept: keptOptimized + "," + keptMonitoring},
			},
			Spec: v1alpha1.MachineSpec{
				Provider: v1alpha1.ProviderLocal, SubnetID: subnet, Reservation: &v1alpha1.Reservation{ID: "r-0000000000000000c", Index: 1}, DisableSourceCheck: true,
				SecurityGroupIDs: []string{group}, InstanceProfile: "unknown",
			},
		},
		&v1alpha1.Machine{ // in no subnet, without a name
			ObjectMeta: metav1.ObjectMeta{Name: "i-0000000000000000c"}, Spec: v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal},
			Status: v1alpha1.MachineStatus{ProviderID: "elsewhere", Addresses: addresses("10.9.0.5"), Join: launched},
		},
		&v1alpha1.Machine{ // that goes
			ObjectMeta: metav1.ObjectMeta{Name: "i-0000000000000000d", DeletionTimestamp: &ended, Finalizers: []string{v1alpha1.FinalizerMachine}},
			Spec:       v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal, SubnetID: subnet},
			Status:     v1alpha1.MachineStatus{ProviderID: "elsewhere", Addresses: addresses("10.0.0.6"), Join: launched},
		})
	templates := template.New(ec2)
	all, err := New(ec2, image.New(ec2), keypair.New(ec2), templates).instances(t.Context(), &awsfront.Call{Caller: awsfronttest.Caller{}, Service: "ec2"})
	if err != nil || len(all) != 4 {
		t.Fatalf("%d instances, %v", len(all), err)
	}
	for i := range all {
		all[i].ImageID = "ami-0000000000000000a" // and not the newest
	}
	all[3].MetadataOptions = nil
	ec2resourcetest.Golden(t, "testdata/filters.txt", instanceNoun(), all)
	statuses := make([]instanceStatus, 0, len(all))
	for i := range all {
		statuses = append(statuses, statusOf(&all[i]))
	}
	ec2resourcetest.Golden(t, "testdata/statusfilters.txt", statusNoun(), statuses)
}

// Every filter of Spot Instance requests is asked about a request with everything, and about requests that lack what it has: a known
// type, a subnet, a profile, tags.
func TestSpotRequestFilters(t *testing.T) {
	const vpc, subnet, group = "vpc-0000000000000000a", "subnet-0000000000000000a", "sg-0000000000000000a"
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	profile := &v1alpha1.IAMInstanceProfile{ObjectMeta: metav1.ObjectMeta{Name: "000000000000.node"}}
	profile.Spec.Name, profile.Spec.ARN = "node", "arn:aws:iam::000000000000:instance-profile/of/node"
	full := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "i-0000000000000000a", CreationTimestamp: metav1.NewTime(at), Annotations: map[string]string{annotationKept: keptMonitoring}},
		Spec: v1alpha1.MachineSpec{
			Provider: v1alpha1.ProviderLocal, SubnetID: subnet, InstanceType: "m5.large", InstanceProfile: "node", KeyName: "key", SecurityGroupIDs: []string{group}, MarketType: v1alpha1.MarketSpot,
		},
		Status: v1alpha1.MachineStatus{ProviderID: v1alpha1.ProviderID("eu-west-1a", "i-0000000000000000a")},
	}
	spotrequest.Keep(full, spotrequest.Kept{Tags: v1alpha1.Tags{"team": "blue"}, ValidUntil: new(metav1.NewTime(at.Add(time.Hour)))})
	ec2 := ec2resourcetest.New(
		t, profile, full,
		&v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: vpc}, Spec: v1alpha1.VPCSpec{CIDRBlock: "10.0.0.0/16"}},
		&v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: subnet}, Spec: v1alpha1.SubnetSpec{VPCID: vpc, CIDRBlock: "10.0.0.0/24", AvailabilityZone: "eu-west-1a"}},
		&v1alpha1.SecurityGroup{ObjectMeta: metav1.ObjectMeta{Name: group}, Spec: v1alpha1.SecurityGroupSpec{VPCID: vpc, GroupName: "web"}},
		&v1alpha1.Machine{ // in no subnet, of no type
			ObjectMeta: metav1.ObjectMeta{Name: "i-0000000000000000b", CreationTimestamp: metav1.NewTime(at)}, Spec: v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal, MarketType: v1alpha1.MarketSpot},
			Status: v1alpha1.MachineStatus{ProviderID: "elsewhere"},
		},
		&v1alpha1.Machine{ // on demand
			ObjectMeta: metav1.ObjectMeta{Name: "i-0000000000000000c"}, Spec: v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal, MarketType: v1alpha1.MarketOnDemand},
		})
	all, err := NewSpotRequests(New(ec2, image.New(ec2), keypair.New(ec2), template.New(ec2))).all(t.Context(), &awsfront.Call{Caller: awsfronttest.Caller{}, Service: "ec2"})
	if err != nil || len(all) != 2 {
		t.Fatalf("%d requests, %v", len(all), err)
	}
	for i := range all {
		all[i].LaunchSpecification.ImageID = "ami-0000000000000000a" // and not the newest
	}
	ec2resourcetest.Golden(t, "testdata/spotfilters.txt", spotRequestNoun(), all)
}
