// SPDX-License-Identifier: Apache-2.0

// Package runner is how a plane's Specs come to run: the interface that every runner implements, and the words in which
// a runner says how its components are. Package supervise runs them as processes of this host.
//
//	         ┌────────────── ended, or its spec changed ─────────────┐
//	         ▼                                                       │
//	Waiting ──► Starting ──(probe answers)──► Ready ◄──► Unready ────┤
//	   ▲  its dependencies are ready                                 │
//	   └───────────────────────── Backoff ◄──────────────────────────┘
//
// What happens if
//   - a spec's hash is equal to that of the component that runs: the component is never restarted, by Apply or by the
//     next runner, unless its program was replaced. Its new Memory, Grace, After and KeepsProgram are in force at once.
//   - a component's program is replaced: the component goes on. The next runner starts it again, unless its spec
//     KeepsProgram: then it goes on until Apply is given the spec without that.
//   - a spec's hash differs: the component ends and starts again with the new spec, when what it needs is ready.
//   - a component is not in the list any more: Apply ends it, after the components that needed it.
//   - the runner ends: components go on. The next runner takes them over by their specs.
package runner
