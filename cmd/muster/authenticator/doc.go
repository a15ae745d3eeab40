// SPDX-License-Identifier: Apache-2.0

// Package authenticator has the command of the authenticator.
package authenticator
