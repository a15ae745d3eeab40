// SPDX-License-Identifier: Apache-2.0

// Package awsapi registers the actions of the account's AWS APIs, but for those of STS and IAM, at the account's front.
//
// To add a service: write its actions in a package of their own (package eks shows how), and register them here.
package awsapi
