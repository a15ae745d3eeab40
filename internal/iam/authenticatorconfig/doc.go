// SPDX-License-Identifier: Apache-2.0

// Package authenticatorconfig reads the file that muster authenticator is set up by. It is strict: what it does not know is an error with its
// path, and all problems are told at once.
package authenticatorconfig
