// SPDX-License-Identifier: Apache-2.0

// Package awsquery is the server's side of AWS's query protocol: a form with Action and Version comes in, XML goes out. IAM and STS speak it.
//
// It decodes strictly: sizes are bounded, a parameter comes once and in one spelling, lists have no gaps, and a parameter that the action
// does not know is refused, since to ignore one (a permissions boundary, say) would grant what was not asked for.
package awsquery
