// SPDX-License-Identifier: Apache-2.0

// Package ec2query is the server's side of the protocol that EC2 alone speaks: forms with Action and Version, whose
// lists have no level of their own, and XML in an envelope of its own.
//
// A parameter that the API does not have is refused with UnknownParameter, as EC2 does.
package ec2query
