// SPDX-License-Identifier: Apache-2.0

// Package query is the server's side of AWS's query protocol: forms with Action and Version, XML. [Codec] is the
// dialect of Auto Scaling, where a parameter that the API does not have is ignored, as AWS does. [Identity] is that of
// STS and IAM, which refuses it: a parameter comes once and in one
// spelling, lists have no gaps, and nothing is ignored.
package query
