// SPDX-License-Identifier: Apache-2.0

// Package awsapi puts the AWS APIs of an account together: the front, the actions of each service, and the identity service as the gate. What it
// returns answers on the endpoint of STS and IAM, whose requests say by their signature which service they are for.
//
// To add a service: write its actions in a package of their own (package eks shows how), and register them here.
package awsapi
