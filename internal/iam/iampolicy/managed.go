// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"crypto/sha256"
	"embed"
	"encoding/base32"

	"muster.dev/muster/internal/iam/iam"
)

// The documents say what AWS's say in their versions of March 2026, by the same actions, resources and conditions;
// statements have no Sid here, and those that differ in their actions only are one. ReadOnlyAccess alone allows less
// than AWS's, which lists some 400 services.
//
//go:embed managed/*.json
var managedDocuments embed.FS

// The paths of AWS-managed policies: "/" for those that anybody attaches, the others for roles that services assume and
// for service-linked roles.
const (
	pathServiceRole = "/service-role/"
	pathLinkedRole  = iam.LinkedRolePath
)

// AWSManaged are the policies that AWS manages and muster knows: each that begins with AmazonEKS, and those that guides
// to EKS attach beside it.
func AWSManaged() []iam.Policy {
	policies := []iam.Policy{
		managed("AdministratorAccess", "/", "Everything.", allow(`"*"`)),
		managed("IAMFullAccess", "/", "All of IAM.", allow(`"iam:*"`)),
		managed("IAMReadOnlyAccess", "/", "Reading of IAM.", allow(`["iam:GenerateCredentialReport","iam:GenerateServiceLastAccessedDetails",`+
			`"iam:Get*","iam:List*","iam:SimulateCustomPolicy","iam:SimulatePrincipalPolicy"]`)),
	}
	for _, p := range []struct{ name, path, description string }{
		{"ReadOnlyAccess", "/", "Reading of the services that clusters are made of; AWS's allows it for all services."},

		{"AmazonEKSBlockStoragePolicy", "/", "What Auto Mode does with volumes and snapshots."},
		{"AmazonEKSClusterPolicy", "/", "What a cluster's control plane does with instances and load balancers."},
		{"AmazonEKSComputePolicy", "/", "What Auto Mode does with instances and launch templates."},
		{"AmazonEKSDashboardConsoleReadOnly", "/", "Reading of the dashboard of an organization's clusters."},
		{"AmazonEKSFargatePodExecutionRolePolicy", "/", "What Fargate needs to pull the images of pods."},
		{"AmazonEKSLoadBalancingPolicy", "/", "What Auto Mode does with load balancers."},
		{"AmazonEKSLocalOutpostClusterPolicy", "/", "What the instances of a control plane on an Outpost do."},
		{"AmazonEKSMCPReadOnlyAccess", "/", "Reading of clusters through the EKS MCP server."},
		{"AmazonEKSNetworkingPolicy", "/", "What Auto Mode does with network interfaces."},
		{"AmazonEKSServicePolicy", "/", "What the service EKS itself does for a cluster."},
		{"AmazonEKSVPCResourceController", "/", "What the VPC resource controller does with network interfaces."},
		{"AmazonEKSWorkerNodeMinimalPolicy", "/", "What a node of Auto Mode needs."},
		{"AmazonEKSWorkerNodePolicy", "/", "What a node needs to find itself and its cluster."},
		{"AmazonEKS_CNI_Policy", "/", "What the VPC CNI does with the addresses of a node."},

		{"AmazonEKSConnectorServiceRolePolicy", pathLinkedRole, "What EKS does for clusters that are connected to it."},
		{"AmazonEKSDashboardServiceRolePolicy", pathLinkedRole, "What EKS reads of an organization for its dashboard."},
		{"AmazonEKSForFargateServiceRolePolicy", pathLinkedRole, "What EKS does for pods on Fargate."},
		{"AmazonEKSLocalOutpostServiceRolePolicy", pathLinkedRole, "What EKS does for control planes on an Outpost."},
		{"AmazonEKSServiceRolePolicy", pathLinkedRole, "What EKS does for all clusters of an account."},
		{"AWSServiceRoleForAmazonEKSNodegroup", pathLinkedRole, "What EKS does for managed node groups."},
		{"AWSEC2SpotFleetServiceRolePolicy", pathLinkedRole, "What EC2 does for fleets of spot instances."},
		{"AWSEC2SpotServiceRolePolicy", pathLinkedRole, "What EC2 does for spot instances."},
		{"AWSElasticLoadBalancingServiceRolePolicy", pathLinkedRole, "What Elastic Load Balancing does with network interfaces."},
		{"AutoScalingServiceRolePolicy", pathLinkedRole, "What EC2 Auto Scaling does with instances."},

		{"AmazonEBSCSIDriverPolicy", pathServiceRole, "What the EBS CSI driver does with volumes and snapshots."},
		{"AmazonEFSCSIDriverPolicy", pathServiceRole, "What the EFS CSI driver does with access points."},
		{"AmazonEC2ContainerRegistryPowerUser", "/", "Reading and writing of image registries."},
		{"AmazonEC2ContainerRegistryPullOnly", "/", "Pulling of images."},
		{"AmazonEC2ContainerRegistryReadOnly", "/", "Reading of image registries."},
		{"AmazonPrometheusRemoteWriteAccess", "/", "Writing of metrics to Prometheus workspaces."},
		{"AmazonS3ReadOnlyAccess", "/", "Reading of buckets."}, // the policy that eksctl's examples of service accounts attach
		{"AmazonSSMManagedInstanceCore", "/", "What the agent of Systems Manager needs."},
		{"AWSXRayDaemonWriteAccess", "/", "What the X-Ray daemon needs."},
		{"CloudWatchAgentServerPolicy", "/", "What the CloudWatch agent needs."},
	} {
		text, err := managedDocuments.ReadFile("managed/" + p.name + ".json")
		if err != nil {
			panic("a managed policy has no document in this program: " + err.Error())
		}
		policies = append(policies, managed(p.name, p.path, p.description, string(text)))
	}
	return policies
}

func managed(name, path, description, document string) iam.Policy {
	return iam.Policy{
		ID: managedID(name), Account: iam.AWSAccount, Path: path, Name: name, Description: description, Default: "v1",
		Versions: []iam.PolicyVersion{{ID: "v1", Document: document}},
	}
}

func allow(actions string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":` + actions + `,"Resource":"*"}]}`
}

// managedID is the same on every installation. It is not AWS's.
func managedID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return string(iam.PolicyPrefix) + base32.StdEncoding.EncodeToString(sum[:])[:17]
}
