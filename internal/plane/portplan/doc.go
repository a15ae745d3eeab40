// SPDX-License-Identifier: Apache-2.0

// Package portplan chooses the ports on the loopback address that the processes of an account and of its clusters
// listen on, and keeps them in a file for each plane: a plane has the same ports after a restart, and no two planes
// have the same one.
//
// While the service runs it claims the ports of all its planes, running or not, so that another Muster of the host
// takes none of them. Claims are files that only the user of the service can lock. Any user may listen on a port that
// no process of a plane listens on yet: nothing prevents that, so who does is told.
//
// A port is chosen again only when another program has taken it while the plane's own process did not run. A port that
// a person asked for is taken or refused, never replaced.
//
// Where components listen and are reached is made from these ports, in places.go alone: all of them are on this host.
package portplan
