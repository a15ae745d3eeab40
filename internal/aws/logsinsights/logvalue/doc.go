// SPDX-License-Identifier: Apache-2.0

// Package logvalue has the values that CloudWatch Logs Insights computes with: text, numbers, booleans, timestamps, lists and
// maps, and how they are compared, sorted and printed.
//
// Log fields have no declared type. A value is a number wherever its text is a decimal number, so 200 and "200" are equal,
// and 9 is less than "10". A field that an event lacks is Null. No comparison with Null holds, therefore its negation does:
// `Type not in ["a"]` keeps events without Type, as AWS's page of the filter command words it. Results of conditions are
// booleans: printed as 1 and 0, equal to 1 and 0 and to the texts true and false, which JSON's booleans are in the log store.
//
// Integers from 2^53 on are compared by their text, since a float64 cannot tell them apart.
package logvalue
