// SPDX-License-Identifier: Apache-2.0

package awsactions

import "strings"

// classicBalancerActions are those of the version 2012-06-01 of Elastic Load Balancing.
func classicBalancerActions() []Action {
	return append([]Action{
		{Name: "DescribeLoadBalancers", Mark: Record},
		{Name: "DescribeTags", Mark: Record},
	}, refusedForOneReason("Muster has no Classic Load Balancers: a Service of type LoadBalancer has an address of Muster's own", `
AddTags ApplySecurityGroupsToLoadBalancer AttachLoadBalancerToSubnets ConfigureHealthCheck
CreateAppCookieStickinessPolicy CreateLBCookieStickinessPolicy CreateLoadBalancer CreateLoadBalancerListeners
CreateLoadBalancerPolicy DeleteLoadBalancer DeleteLoadBalancerListeners DeleteLoadBalancerPolicy
DeregisterInstancesFromLoadBalancer DescribeAccountLimits DescribeInstanceHealth DescribeLoadBalancerAttributes
DescribeLoadBalancerPolicies DescribeLoadBalancerPolicyTypes DetachLoadBalancerFromSubnets
DisableAvailabilityZonesForLoadBalancer EnableAvailabilityZonesForLoadBalancer ModifyLoadBalancerAttributes
RegisterInstancesWithLoadBalancer RemoveTags SetLoadBalancerListenerSSLCertificate
SetLoadBalancerPoliciesForBackendServer SetLoadBalancerPoliciesOfListener`)...)
}

// balancerActions are those of the version 2015-12-01.
func balancerActions() []Action {
	return append([]Action{
		{Name: "DescribeLoadBalancers", Mark: Record},
		{Name: "DescribeTargetGroups", Mark: Record},
		{Name: "DescribeTags", Mark: Record},
	}, refusedForOneReason("Muster has no such load balancers: a Service of type LoadBalancer has an address of Muster's own", `
AddListenerCertificates AddTags AddTrustStoreRevocations CreateListener CreateLoadBalancer CreateRule
CreateTargetGroup CreateTrustStore DeleteListener DeleteLoadBalancer DeleteRule DeleteSharedTrustStoreAssociation
DeleteTargetGroup DeleteTrustStore DeregisterTargets DescribeAccountLimits DescribeCapacityReservation
DescribeListenerAttributes DescribeListenerCertificates DescribeListeners DescribeLoadBalancerAttributes DescribeRules
DescribeSSLPolicies DescribeTargetGroupAttributes DescribeTargetHealth DescribeTrustStoreAssociations
DescribeTrustStoreRevocations DescribeTrustStores GetResourcePolicy GetTrustStoreCaCertificatesBundle
GetTrustStoreRevocationContent ModifyCapacityReservation ModifyIpPools ModifyListener ModifyListenerAttributes
ModifyLoadBalancerAttributes ModifyRule ModifyTargetGroup ModifyTargetGroupAttributes ModifyTrustStore RegisterTargets
RemoveListenerCertificates RemoveTags RemoveTrustStoreRevocations SetIpAddressType SetRulePriorities SetSecurityGroups
SetSubnets`)...)
}

// refusedForOneReason are refused actions, whose names have white space between them.
func refusedForOneReason(reason, names string) []Action {
	var actions []Action
	for name := range strings.FieldsSeq(names) {
		actions = append(actions, Action{Name: name, Mark: Refused, Reason: reason})
	}
	return actions
}
