// SPDX-License-Identifier: Apache-2.0

// Package logevent makes rows of the log store (package logstore) from lines of the control plane's logs, and names
// their fields as CloudWatch Logs Insights does.
//
// A row has these fields. VictoriaLogs keeps text; a field without a value is absent.
//
//	_time           the time of the event, which Insights calls @timestamp
//	_msg            the line as it was written, without invalid UTF-8: @message
//	@log            ACCOUNT:LOG-GROUP, a field of the stream
//	@logStream      the log stream, a field of the stream
//	@file, @offset  the file and the byte that the line begins at: together they are the identity of the row
//	@truncated      "true" if _msg lacks the end of the line
//
// A line that is a JSON object has a field for each scalar in it besides. Names are joined by dots, and elements of arrays
// have their index as name: responseObject.status.conditions.0.message. VictoriaLogs alone would keep an array as text. A
// number is kept as it was written; null is absent. A top-level name that begins with @ has one more of it, as in
// Insights, and so have the names that VictoriaLogs uses itself.
//
// What happens if
//
//	a line is no JSON object, or damaged          the row has _msg alone
//	an object has more than 900 fields            those after them are in _msg only: VictoriaLogs drops a row of more than 1,000
//	a name has more than 128 bytes                the field is in _msg only: VictoriaLogs would drop the row
//	a name comes twice                            the first one counts
//	an object is nested without end               fields deeper than 64 levels are in _msg only
//	the row has more than 1 MiB                   it has _msg alone, and of that as much as fits
package logevent
