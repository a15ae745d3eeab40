// SPDX-License-Identifier: Apache-2.0

// Package authenticatorconfig reads the configuration file of muster authenticator. It is strict: an unknown key is an
// error with its path, and all problems are reported at once.
package authenticatorconfig
