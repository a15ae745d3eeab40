// SPDX-License-Identifier: Apache-2.0

// Package authenticator has the commands that run the authenticator and make its certificates: authenticator,
// authenticator init.
package authenticator
