// SPDX-License-Identifier: Apache-2.0

// Package policyconfig reads the configuration file of muster certificate-controller. It is strict: an unknown key is
// an error with its path, and all problems are reported at once.
package policyconfig
