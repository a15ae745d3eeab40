// SPDX-License-Identifier: Apache-2.0

package region

// ServiceNames are the DNS names of the AWS APIs that an account answers, as AWS's tools make them from the region:
// those of the region, the ones with IPv6 that SDKs take with AWS_USE_DUALSTACK_ENDPOINT and EKS Auth always has, and
// those of services that have one for the world. The first is that of EKS.
func (r Region) ServiceNames() []string {
	var names []string
	for _, service := range []string{"eks", "arc-zonal-shift", "ec2", "autoscaling", "cloudformation", "ssm", "kms", "logs", "elasticfilesystem", "sqs", "events", "fis", "tagging", "elasticloadbalancing", "sts"} {
		names = append(names, service+"."+r.Name+".amazonaws.com", service+"."+r.Name+".api.aws")
	}
	for _, place := range PricePlaces() {
		names = append(names, "api.pricing."+place+".amazonaws.com")
	}
	names = append(names, "api.ecr."+r.Name+".amazonaws.com", "ecr."+r.Name+".api.aws")
	return append(names, "eks-auth."+r.Name+".api.aws", "sts.amazonaws.com", "iam.amazonaws.com", "iam.global.api.aws")
}

// RegistryName is the DNS name of the image registry of an account.
func (r Region) RegistryName(account string) string {
	return account + ".dkr.ecr." + r.Name + ".amazonaws.com"
}

// PricePlaces are the regions that have an endpoint of AWS's price list. Requests for the prices of every region are
// signed for one of them (AWS's reference of the Price List Query API, and Karpenter's pkg/providers/pricing).
func PricePlaces() []string { return []string{"us-east-1", "ap-south-1", "eu-central-1"} }
