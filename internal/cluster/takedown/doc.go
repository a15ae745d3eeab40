// SPDX-License-Identifier: Apache-2.0

// Package takedown ends the processes of an installation in their order, and removes what the installation or one of its
// clusters has on this host. It needs no running service.
package takedown
