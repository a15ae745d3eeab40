// SPDX-License-Identifier: Apache-2.0

// Package cloudwatchlogs has the actions of CloudWatch Logs' API about log groups, over records of the management
// plane. A log group is a name with a retention and tags. It takes no events and keeps none: what a control plane
// writes is in the service's own logs.
//
// What happens if
//
//	a log group is not there             IAM is asked about it all the same; who may is told ResourceNotFoundException
//	it has deletion protection           DeleteLogGroup is refused with ValidationException
//	its key is deleted later             it keeps the key's ARN, as on AWS
//	CreateLogGroup is sent twice         the second is refused with ResourceAlreadyExistsException, as on AWS
//	the management plane is away         ServiceUnavailableException, which SDKs try again
package cloudwatchlogs
