// SPDX-License-Identifier: Apache-2.0

// Package ssm has the actions of Systems Manager that read parameters. The parameters are the public ones that EKS
// publishes about its images, see package image; an account has none of its own, and none can be made.
package ssm
