// SPDX-License-Identifier: Apache-2.0

// Package supervise keeps processes running: it starts each once what it needs is ready, asks whether it serves, and starts
// it again with a growing pause when it ends.
//
// The process table is its only record. Every process carries marks in its environment that say which state directory it
// belongs to and which spec it runs; a supervisor that starts, after a crash or an upgrade of itself, finds by them what
// runs already and takes it over as it is. So there are no pid files to be stale, and the processes do not end with their
// supervisor.
//
//	         ┌────────────── ended, or its spec changed ─────────────┐
//	         ▼                                                       │
//	Waiting ──► Starting ──(probe answers)──► Ready ◄──► Unready ────┤
//	   ▲  what it needs is ready                                     │
//	   └───────────────────────── Backoff ◄──────────────────────────┘
package supervise
