// SPDX-License-Identifier: Apache-2.0

// Package prefilter finds the part of a query of CloudWatch Logs Insights that the log store can decide: a filter of LogsQL,
// VictoriaLogs' language, that each event passes which could change the answer. Other events that the store passes are
// dropped by package evaluation, so the two languages need not agree.
//
// A condition is translated twice: into a filter that passes at least the events that satisfy it, and into one that passes at
// most these. The negation of a condition takes the negation of the second. A condition that cannot be translated passes
// everything by the first and nothing by the second. Filters use four things of LogsQL only, each of one field's text: equal to, begins with,
// contains, not empty.
//
// Three facts about the store are relied upon: it keeps the text of a field as it was given, a field that is missing has the
// empty text, and evaluation sees the same fields as the store has. A number may be spelled in many ways: 200, 200.0, 2e2. The
// filter for a number therefore passes every text with a dot, an e, a sign or a leading zero.
//
// Only filter commands before the first limit, dedup, stats and pattern count, and of their fields only those that the query did
// not make itself. @timestamp, @ingestionTime and @ptr are not fields of the store that could be compared.
package prefilter
