// SPDX-License-Identifier: Apache-2.0

// Package policyconfig reads the file that muster certificate-controller is set up by. It is strict: what it does not know is an
// error with its path, and all problems are told at once.
package policyconfig
