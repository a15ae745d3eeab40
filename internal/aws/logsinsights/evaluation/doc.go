// SPDX-License-Identifier: Apache-2.0

// Package evaluation computes the answer of a query of CloudWatch Logs Insights from log events. It is a function of the query,
// the events in any order, and the time. The log
// store may leave out events beforehand that change no answer (package prefilter).
//
// Commands take effect in their order. Rows without a sort command are sorted by @timestamp, the newest first, and by @ptr
// where timestamps are equal. A result has at most the rows of the last limit command, or logsinsights.MaxRows.
//
// Columns are those of the last display command, or of stats or pattern, or of all fields commands with what parse and unnest
// add; without any of them they are @timestamp and @message. A row leaves out fields that it lacks. Rows of events end
// with @ptr.
//
// Where AWS's documentation leaves a choice:
//
//   - stddev is the population's, and pct and median are nearest-rank: a value that occurs;
//   - min, max, earliest and latest of a timestamp are milliseconds since the epoch, as seen of CloudWatch;
//   - groups of stats are sorted by their by-values, timestamps with the newest first;
//   - stats of no rows has no rows.
//
// What happens if
//
//	more rows, groups or values must be kept than Limits allow   the query fails with a *LimitError; nothing is left out silently
//	reading events or Options.Check fails                        the query fails with that error
//	a value has the wrong type                                   its result is Null (package logfunction), and conditions are false
package evaluation
