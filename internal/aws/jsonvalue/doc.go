// SPDX-License-Identifier: Apache-2.0

// Package jsonvalue reads and writes JSON by a table of AWS's, for the protocols restjson and awsjson.
//
// It refuses what has more than one reading: text that is not UTF-8, a name that comes twice, anything behind the
// document, a value of another type than the table's. A member that the table does not have is ignored, as AWS does;
// null is the same as no member.
package jsonvalue
