// SPDX-License-Identifier: Apache-2.0

// Package logquery answers queries of CloudWatch Logs Insights about log groups from the account's log store, and reads pages of
// events in their order.
//
// A query is read by package logsinsights. The part of it that the store can decide, by package prefilter, is asked of the
// store with the log, the range of time and the fields that the query reads; package evaluation computes the answer from the rows
// that come. A query that no event can pass is not asked.
//
// The log is chosen by the field @log, not by VictoriaLogs' filter of streams: after the store was killed a row may be on
// its disk whose stream is not.
//
// The store has no order. A [Page] first asks it for the time up to which it is to look, and then for all rows up to that. It keeps
// the first ones of them. So it needs little memory, and a place between two events is all that the next page has to know.
//
// What happens if
//
//	the store ends or gives up meanwhile   the query fails; an answer is never a part of one
//	the answer needs too much memory       the query fails with an *evaluation.LimitError
//	a row has no time, file or offset      the query fails: Muster wrote no such row
//	a line was written a moment ago        it is in the answer once the store has it, which takes some seconds
package logquery
