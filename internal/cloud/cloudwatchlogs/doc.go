// SPDX-License-Identifier: Apache-2.0

// Package cloudwatchlogs has the actions of CloudWatch Logs' API. A log group is a record of the management plane, with its
// retention and tags, and so is a log stream that somebody made. Events are rows of the account's log store (package logstore): those
// of clusters, which package logshipper brings there, and those of PutLogEvents. The log group of a cluster is made when one of its
// log types is switched on, and its log streams are there with their events.
//
// Queries and what came of them are in memory: the last 1,000, as far as they fit into 64 MiB. Two run at once.
//
// What happens if
//
//	a log group is not there             IAM is asked about it all the same; who may is told ResourceNotFoundException
//	it has deletion protection           DeleteLogGroup is refused with ValidationException
//	its key is deleted later             it keeps the key's ARN, as on AWS
//	CreateLogGroup is sent twice         the second is refused with ResourceAlreadyExistsException, as on AWS
//	it is of a cluster and is deleted    its events go; it is there again once the cluster is changed, or the service starts
//	it is deleted, and made again        it has no events but those whose time was in the future when it was deleted
//	PutLogEvents is sent again           after an error, its events are there once; after an answer, twice, as on AWS
//	the service starts again             queries are forgotten: their ids are ResourceNotFoundException
//	somebody else asks for an answer     IAM is asked about the log groups of the query
//	there was never anything to keep     no log store runs, and there are no events; PutLogEvents starts it
//	VictoriaLogs was not built           PutLogEvents is refused with ServiceUnavailableException, which says what to do
//	the log store is away                ServiceUnavailableException, which SDKs try again; nothing is deleted
//	the management plane is away         ServiceUnavailableException, which SDKs try again
package cloudwatchlogs
