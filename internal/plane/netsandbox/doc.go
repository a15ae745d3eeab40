// SPDX-License-Identifier: Apache-2.0

// Package netsandbox runs a program that binds its ports on all addresses, such as Karpenter, so that nobody outside
// reaches them: in a network namespace with the loopback interface alone, which the supervisor gave this process (see
// component.View). The program finds the ports of the host that it needs at their own addresses; this process listens
// there, and has each connection dialled on the host by a CONNECT proxy at a unix socket, which decides what may be
// reached. The program's answers about its health go out by another unix socket.
//
// What happens if
//
//	this process dies          the kernel kills the program (PR_SET_PDEATHSIG), and the supervisor starts both again
//	the program ends           this process ends, too
//	the proxy is away          connections wait for it for 5 seconds, and end then
//	the namespace is the host's  nothing is started: the program's ports would be open to everybody
package netsandbox
