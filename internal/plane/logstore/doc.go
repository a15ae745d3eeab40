// SPDX-License-Identifier: Apache-2.0

// Package logstore asks the account's log store, which is VictoriaLogs on a unix socket: rows written, kept, found again.
//
// VictoriaLogs answers a request to write before the rows are on the disk: they are in memory for some seconds. Its
// request to flush makes rows visible to queries and does not write them to the disk either (DebugFlush in
// lib/logstorage). Nor has a row an identity for it: the same row written twice is there twice. So a [Session] is what
// its user can build on:
//
//	it has one connection            so it ends with the process that it speaks to, and no answer is of another process than the rows
//	Persist waits                    until the process says that no row is in memory: then all rows of the session are on the disk.
//	                                 What it says may be a second old, so the first page of metrics does not count
//	Present lists                    which lines of a file are there, on the disk or not, by the fields @file and @offset
//	sessions write in turns          else rows of another session would be in memory, and Persist would not end
//
// A [Batch] is what comes by itself and not from a file. Write puts batches that come while another session writes together,
// so that they are on the disk at once; a batch that is sent again is there once.
//
// Rows of a [Store] are the answer to any query. VictoriaLogs takes 30 seconds for a query at most. Where it gives up, or ends, it
// has sent a part of the rows; then the last thing that comes is an error.
//
// The package trusts whoever listens at the socket, which is in a directory of the service's user alone.
package logstore
