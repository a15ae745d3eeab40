// SPDX-License-Identifier: Apache-2.0

// Package kinds connects commands to API servers, those of a state directory or of a kubeconfig, and finds and prints
// their objects. Its errors say what to do: which command starts a server that does not answer, which field of an
// object is wrong.
package kinds
