// SPDX-License-Identifier: Apache-2.0

// Package kubeletcert reads the certificates that kubelets use from the disks of their machines. A rotation of the
// authority waits for them. The files are the machines' own: nothing outside a machine's directory is opened, and
// nothing in them is trusted.
package kubeletcert
