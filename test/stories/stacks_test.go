// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// clusterStack is a template of a network, the roles of a cluster, the cluster and a node group without machines.
const clusterStack = `
Parameters:
  Label: {Type: String, Default: first}
  Range: {Type: String, Default: 10.72.64.0/24}
Resources:
  VPC: {Type: "AWS::EC2::VPC", Properties: {CidrBlock: 10.72.0.0/16, EnableDnsHostnames: true}}
  Gateway: {Type: "AWS::EC2::InternetGateway"}
  Attachment: {Type: "AWS::EC2::VPCGatewayAttachment", Properties: {VpcId: !Ref VPC, InternetGatewayId: !Ref Gateway}}
  Table: {Type: "AWS::EC2::RouteTable", Properties: {VpcId: !Ref VPC}}
  Route: {Type: "AWS::EC2::Route", DependsOn: Attachment, Properties: {RouteTableId: !Ref Table, DestinationCidrBlock: 0.0.0.0/0, GatewayId: !Ref Gateway}}
  SubnetA: {Type: "AWS::EC2::Subnet", Properties: {VpcId: !Ref VPC, CidrBlock: 10.72.0.0/20, AvailabilityZone: !Select [0, !GetAZs ""], MapPublicIpOnLaunch: true}}
  SubnetB: {Type: "AWS::EC2::Subnet", Properties: {VpcId: !Ref VPC, CidrBlock: 10.72.16.0/20, AvailabilityZone: !Select [1, !GetAZs ""], MapPublicIpOnLaunch: true}}
  TieA: {Type: "AWS::EC2::SubnetRouteTableAssociation", Properties: {SubnetId: !Ref SubnetA, RouteTableId: !Ref Table}}
  TieB: {Type: "AWS::EC2::SubnetRouteTableAssociation", Properties: {SubnetId: !Ref SubnetB, RouteTableId: !Ref Table}}
  ServiceRole:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: {Version: "2012-10-17", Statement: [{Effect: Allow, Principal: {Service: eks.amazonaws.com}, Action: ["sts:AssumeRole", "sts:TagSession"]}]}
      ManagedPolicyArns: ["arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"]
  NodeRole:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: {Version: "2012-10-17", Statement: [{Effect: Allow, Principal: {Service: ec2.amazonaws.com}, Action: "sts:AssumeRole"}]}
      ManagedPolicyArns: ["arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy", "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly"]
  Cluster:
    Type: AWS::EKS::Cluster
    Properties: {Name: stacked, RoleArn: !GetAtt ServiceRole.Arn, ResourcesVpcConfig: {SubnetIds: [!Ref SubnetA, !Ref SubnetB]}, Tags: [{Key: own, Value: a}]}
  Nodes:
    Type: AWS::EKS::Nodegroup
    Properties:
      ClusterName: !Ref Cluster
      NodegroupName: nodes
      NodeRole: !GetAtt NodeRole.Arn
      Subnets: [!Ref SubnetA, !Ref SubnetB]
      ScalingConfig: {MinSize: 0, DesiredSize: 0, MaxSize: 1}
      Labels: {part: !Ref Label}
  Extra: {Type: "AWS::EC2::Subnet", DependsOn: Nodes, Properties: {VpcId: !Ref VPC, CidrBlock: !Ref Range, AvailabilityZone: !Select [0, !GetAZs ""]}}
Outputs:
  Endpoint: {Value: !GetAtt Cluster.Endpoint, Export: {Name: !Sub "${AWS::StackName}::Endpoint"}}
  Group: {Value: !GetAtt Cluster.ClusterSecurityGroupId}
`

// TestStacks makes a cluster with its network, roles and node group by a template, and changes and deletes it, with the service killed again
// and again: nothing is made twice and nothing is left. An update that fails leaves what was before.
//
//story:about cloud/cloudformation aws/cloudformation aws/awsfront iam/identityservice
func TestStacks(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", "0")
	w := newIAM(t, i)
	path := filepath.Join(t.TempDir(), "stack.yaml")
	if err := os.WriteFile(path, []byte(clusterStack), 0o644); err != nil {
		t.Fatal(err)
	}
	id := w.told("cloudformation", "create-stack", "--stack-name", "blue", "--template-body", "file://"+path, "--capabilities", "CAPABILITY_IAM",
		"--tags", "Key=team,Value=a", "--query", "StackId", "--output", "text")
	for _, resource := range []string{"VPC", "Cluster", "Nodes"} {
		w.stackHas("blue", resource)
		i.kill("serve")
	}
	w.stackIs("blue", "CREATE_COMPLETE")
	if out := w.told("ec2", "describe-vpcs", "--filters", "Name=cidr,Values=10.72.0.0/16", "--query", "Vpcs[].Tags[?Key=='team'].Value", "--output", "text"); out != "a" {
		t.Errorf("VPCs with the tag of the stack: %q", out)
	}
	if out := w.told("eks", "list-nodegroups", "--cluster-name", "stacked", "--query", "nodegroups", "--output", "text"); out != "nodes" {
		t.Errorf("the cluster has the node groups %q", out)
	}
	if out, _ := i.muster("get", "stacks"); !strings.Contains(out, "blue") || !strings.Contains(out, "CREATE_COMPLETE") {
		t.Errorf("muster get stacks: %s", out)
	}

	w.told("cloudformation", "update-stack", "--stack-name", "blue", "--use-previous-template", "--capabilities", "CAPABILITY_IAM", "--parameters", "ParameterKey=Label,ParameterValue=second")
	i.kill("serve")
	w.stackIs("blue", "UPDATE_COMPLETE")
	w.labelled("second")

	// The node group is changed before the subnet cannot be made, and changed back.
	w.told("cloudformation", "update-stack", "--stack-name", "blue", "--use-previous-template", "--capabilities", "CAPABILITY_IAM",
		"--parameters", "ParameterKey=Label,ParameterValue=third", "ParameterKey=Range,ParameterValue=10.99.0.0/24")
	w.stackHas("blue", "Nodes")
	i.kill("serve")
	w.stackIs("blue", "UPDATE_ROLLBACK_COMPLETE")
	w.labelled("second")
	if out := w.told("cloudformation", "describe-stack-events", "--stack-name", "blue", "--query", "StackEvents[?ResourceStatus=='CREATE_FAILED'||ResourceStatus=='UPDATE_FAILED'].ResourceStatusReason", "--output", "text"); !strings.Contains(out, "10.99.0.0/24") {
		t.Errorf("the reasons of failures are %q", out)
	}

	w.told("cloudformation", "delete-stack", "--stack-name", "blue")
	i.kill("serve")
	w.stackIs(id, "DELETE_COMPLETE")
	for what, out := range map[string]string{
		"VPCs":     w.told("ec2", "describe-vpcs", "--filters", "Name=cidr,Values=10.72.0.0/16", "--query", "Vpcs[].VpcId", "--output", "text"),
		"gateways": w.told("ec2", "describe-internet-gateways", "--filters", "Name=tag:team,Values=a", "--query", "InternetGateways[].InternetGatewayId", "--output", "text"),
		"roles":    w.told("iam", "list-roles", "--query", "Roles[?starts_with(RoleName, 'blue-')].RoleName", "--output", "text"),
		"clusters": w.told("eks", "list-clusters", "--query", "clusters[?@=='stacked']", "--output", "text"),
	} {
		if out != "" {
			t.Errorf("%s are left: %s", what, out)
		}
	}
}

// told is the answer to a request of the first user, sent until it is answered: the service may just be starting again.
func (w *iam) told(args ...string) string {
	w.t.Helper()
	var out string
	w.eventually("aws "+strings.Join(args[:2], " "), func() (err error) {
		out, err = w.aws(w.admin, args...)
		return err
	})
	return strings.TrimSpace(out)
}

// stackIs waits until a stack has a status.
func (w *iam) stackIs(name, status string) {
	w.t.Helper()
	w.eventually("stack "+name+" is "+status, func() error {
		out, err := w.aws(w.admin, "cloudformation", "describe-stacks", "--stack-name", name, "--query", "Stacks[0].[StackStatus,StackStatusReason]", "--output", "text")
		if err == nil && !strings.HasPrefix(out, status) {
			err = errors.New(out)
		}
		return err
	})
}

// stackHas waits until something has begun about a resource of a stack.
func (w *iam) stackHas(name, resource string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("stack %s has %s", name, resource), func() error {
		_, err := w.aws(w.admin, "cloudformation", "describe-stack-resource", "--stack-name", name, "--logical-resource-id", resource, "--query", "StackResourceDetail.ResourceStatus", "--output", "text")
		return err
	})
}

// labelled fails the test if the nodes of the stack's node group do not have a label.
func (w *iam) labelled(want string) {
	w.t.Helper()
	out := w.told("eks", "describe-nodegroup", "--cluster-name", "stacked", "--nodegroup-name", "nodes", "--query", "nodegroup.labels.part", "--output", "text")
	if out != want {
		w.t.Errorf("the node group has the label %q, want %q", out, want)
	}
}
