// SPDX-License-Identifier: Apache-2.0

// Package queryvalue reads forms and writes XML by a table of AWS's, for the protocols query and ec2query.
//
// A form names values by paths: Filter.1.Value.2=x. It is refused if it has more than one reading: a parameter that
// comes twice, a parameter that has a value and parts, text that is not UTF-8, numbers of a list such as 01. Items of a
// list are in the order of their numbers, which may have gaps.
package queryvalue
