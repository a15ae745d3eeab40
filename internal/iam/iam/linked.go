// SPDX-License-Identifier: Apache-2.0

package iam

import "strings"

// LinkedRolePath begins the path of service-linked roles and of the policies that AWS attaches to them. The name of the
// service follows in a role's path: /aws-service-role/eks.amazonaws.com/.
const LinkedRolePath = "/aws-service-role/"

// LinkedService is a service that has a service-linked role.
type LinkedService struct {
	Service string // eks.amazonaws.com
	Role    string // the role's name, to which a suffix may be added
	Policy  string // the ARN of the policy that the role has
	Suffix  bool   // an account may have several, told apart by a suffix
}

// LinkedServices are the services that clusters have service-linked roles for, with the names that AWS gives them.
func LinkedServices() []LinkedService {
	policy := func(name string) string {
		return Policy{Account: AWSAccount, Path: LinkedRolePath, Name: name}.ARN().String()
	}
	return []LinkedService{
		{"autoscaling.amazonaws.com", "AWSServiceRoleForAutoScaling", policy("AutoScalingServiceRolePolicy"), true},
		{"eks.amazonaws.com", "AWSServiceRoleForAmazonEKS", policy("AmazonEKSServiceRolePolicy"), false},
		{"eks-connector.amazonaws.com", "AWSServiceRoleForAmazonEKSConnector", policy("AmazonEKSConnectorServiceRolePolicy"), false},
		{"eks-fargate.amazonaws.com", "AWSServiceRoleForAmazonEKSForFargate", policy("AmazonEKSForFargateServiceRolePolicy"), false},
		{"eks-nodegroup.amazonaws.com", "AWSServiceRoleForAmazonEKSNodegroup", policy("AWSServiceRoleForAmazonEKSNodegroup"), false},
		{"elasticloadbalancing.amazonaws.com", "AWSServiceRoleForElasticLoadBalancing", policy("AWSElasticLoadBalancingServiceRolePolicy"), false},
		{"spot.amazonaws.com", "AWSServiceRoleForEC2Spot", policy("AWSEC2SpotServiceRolePolicy"), false},
		{"spotfleet.amazonaws.com", "AWSServiceRoleForEC2SpotFleet", policy("AWSEC2SpotFleetServiceRolePolicy"), false},
	}
}

// Linked reports whether the role is linked to a service, so that only the service may change it.
func (r Role) Linked() bool { return strings.HasPrefix(r.Path, LinkedRolePath) }

// CheckRolePath checks the path of a role that somebody makes. The paths of service-linked roles are reserved.
func CheckRolePath(s string) error {
	if strings.HasPrefix(s+"/", LinkedRolePath) {
		return &Invalid{"Path", quoted(s), "paths that begin with " + LinkedRolePath + " are for service-linked roles: use CreateServiceLinkedRole"}
	}
	return CheckPath(s)
}
