// SPDX-License-Identifier: Apache-2.0

// Package supervise is the runner (package runner) that keeps processes running: it starts each one when the processes
// that it needs are ready, probes it, and restarts it with a growing pause when it ends.
//
// The process table is its only record. Every process carries marks in its environment that say which state directory
// it belongs to and which spec it runs; a supervisor that starts, after a crash or an upgrade of itself, finds the
// running processes by their marks and takes them over as they are. So there are no pid files to be stale, and the
// processes do not end with their supervisor.
//
// A process whose spec has a view runs as a user of its own (package planeid), if the supervisor is told so, and is
// given its files before each start. If it runs as root already, it is taken over as it is. The marks of a process are
// believed if the process is of this user, or of the user of the component that its name says.
//
// A process whose spec limits its memory runs in a control group of its own, which is found again by the name of the
// process. The limit is not part of what the marks say: another limit is set under the process that runs. A process
// that is ended at its limit is started again like one that ends by itself.
package supervise
