// SPDX-License-Identifier: Apache-2.0

// Package pricing has the action GetProducts of AWS's price list, of the service AmazonEC2: the prices on demand of the
// instance types that machines can be (package instancetype, which also has the prices of spot instances), in the JSON
// of the format aws_v1. Nobody is charged: tools such as Karpenter choose by price.
//
// The list has one product that is no instance type of the account's, m5.metal: Karpenter asks for bare metal in a
// request of its own, and takes none of the prices if that has no answer. DescribeInstanceTypes does not name it, and
// nothing launches it.
//
//	What happens if                           Then
//	another service's products are asked for  InvalidParameterException with the one service
//	a filter names an attribute that no product has  InvalidParameterException with the attributes
//	a filter asks for another region, tenancy or system  the list is empty, as AWS's is
package pricing
