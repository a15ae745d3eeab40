// SPDX-License-Identifier: Apache-2.0

// Package query is the server's side of AWS's query protocol as Auto Scaling speaks it: forms with Action and Version, XML. STS and IAM have
// package awsquery, which refuses more.
//
// A parameter that the API does not have is ignored, as AWS does.
package query
