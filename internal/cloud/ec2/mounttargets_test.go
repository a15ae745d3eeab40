// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"testing"

	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/storage/efs"
)

// A mount target of EFS keeps its subnet and its security groups, as its network interface does on AWS.
func TestMountTargetsKeep(t *testing.T) {
	w := newWorld(t, aVPC(vpcA, "10.0.0.0/16"), readySubnet(subnetA, vpcA, "10.0.0.0/24", "a"), readySubnet(subnetB, vpcA, "10.0.1.0/24", "b"))
	group := between(w.ask("CreateSecurityGroup&GroupName=efs&GroupDescription=d&VpcId="+vpcA, 200), "<groupId>", "</groupId>")
	target := &awsrecord.Record[efs.MountTarget]{ID: "fsmt-0123456789abcdef0", Data: efs.MountTarget{FileSystem: "fs-0123456789abcdef0", Subnet: subnetA, VPC: vpcA, SecurityGroups: []string{group}}}
	if err := ec2resource.MountTargets.Create(t.Context(), w.api, target); err != nil {
		t.Fatal(err)
	}
	w.ask("DeleteSubnet&SubnetId="+subnetA, 400, "DependencyViolation", target.ID)
	w.ask("DeleteSecurityGroup&GroupId="+group, 400, "DependencyViolation", target.ID)
	w.ask("DeleteSubnet&SubnetId="+subnetB, 200)
	if err := ec2resource.MountTargets.Delete(t.Context(), w.api, target.ID); err != nil {
		t.Fatal(err)
	}
	w.ask("DeleteSecurityGroup&GroupId="+group, 200)
	w.ask("DeleteSubnet&SubnetId="+subnetA, 200)
}
