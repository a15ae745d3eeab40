// SPDX-License-Identifier: Apache-2.0

// Package evidence gathers what package diagnosis decides by: objects of the management plane and of the cluster, lines
// of logs on this host. It reads, and changes nothing.
//
// What happens if something cannot be read: a [Snapshot] without the management plane is an error, since nothing can be
// explained then. A cluster that does not answer, a log that cannot be read and objects that are left out for their
// number are told in Facts.Unseen, and the rest is explained.
//
// Text of machines is a stranger's: it is bounded here, and whoever prints it makes it safe for a terminal.
package evidence
