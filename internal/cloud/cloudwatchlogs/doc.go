// SPDX-License-Identifier: Apache-2.0

// Package cloudwatchlogs has the actions of CloudWatch Logs' API about log groups, over records of the management
// plane. A log group is a name with a retention and tags, and nothing enforces the retention. The log group of a cluster is
// made when one of its log types is switched on; the account's log store has its lines (package logshipper). Other
// log groups take no events.
//
// What happens if
//
//	a log group is not there             IAM is asked about it all the same; who may is told ResourceNotFoundException
//	it has deletion protection           DeleteLogGroup is refused with ValidationException
//	its key is deleted later             it keeps the key's ARN, as on AWS
//	CreateLogGroup is sent twice         the second is refused with ResourceAlreadyExistsException, as on AWS
//	it is of a cluster and is deleted    it is there again once the cluster is changed, or the service starts
//	the management plane is away         ServiceUnavailableException, which SDKs try again
package cloudwatchlogs
