// SPDX-License-Identifier: Apache-2.0

// Package filterpattern reads filter patterns of CloudWatch Logs, and says which messages they match ("Filter pattern syntax" in
// the CloudWatch Logs User Guide).
//
//	ERROR "exact phrase" -exclude   the message has all terms and none that is excluded
//	?ERROR ?WARN                    the message has one of the terms; these are passed over beside other terms, as on AWS
//	%4\d\d%                         the message matches a regular expression
//	{ $.verb = "create" && … }      the message is JSON whose fields are so
//	[ip, ..., status = 4*, bytes]   the message has fields between spaces that are so
//
// What happens if
//
//	a term has other characters than letters, digits and _   refused, as on AWS: it must be in quotes
//	a message is no JSON                                     a pattern of JSON does not match it
//	a field is absent                                        only NOT EXISTS is true of it
//	a pattern is longer than 1,024 characters                refused, as on AWS
//	it has more than two regular expressions                 refused, as on AWS
//	a regular expression has long repetitions                refused: a match cannot be interrupted, and would take minutes
package filterpattern
