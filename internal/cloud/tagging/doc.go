// SPDX-License-Identifier: Apache-2.0

// Package tagging has the reading actions of the Resource Groups Tagging API: GetResources, GetTagKeys and GetTagValues,
// over the resources that services have told of by [awsresource.TagSources]. It changes no tag: each service has an
// action for that.
//
//	What happens if                                    Then
//	a resource has no tag                              it is not listed, as on AWS
//	a type that no resource has is asked for           the list is empty
//	a resource is made or deleted between two pages    the pages go on behind the ARN that was answered last
//	a service cannot list its resources                the request fails: half a list would look like a whole one
package tagging
