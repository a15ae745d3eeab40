// SPDX-License-Identifier: Apache-2.0

// Package runner has the words in which a runner says how the components of a plane are: states, memory, and what keeps
// components from being Ready. Package supervise runs components as processes of this host.
//
//	         ┌────────────── ended, or its spec changed ─────────────┐
//	         ▼                                                       │
//	Waiting ──► Starting ──(probe answers)──► Ready ◄──► Unready ────┤
//	   ▲  its dependencies are ready                                 │
//	   └───────────────────────── Backoff ◄──────────────────────────┘
package runner
