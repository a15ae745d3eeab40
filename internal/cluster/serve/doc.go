// SPDX-License-Identifier: Apache-2.0

// Package serve puts the parts together: authorities, component specs, the supervisor and the controllers are one
// running cluster, the service. It decides nothing that another package could decide.
//
// The service is crash-only. It keeps nothing in memory that it cannot find again: components and machines are
// processes of their own that go on without it and are taken over by its successor, and the wishes of people are in the
// management plane.
//
//	Run ──► lock ──► configuration, ports, certificates ──► supervise components ─────────────────────────┐
//	                                                              │ management plane ready                 │ until the
//	                                                              ├──► kinds, first Cluster and NodeGroups │ context ends
//	                                                              │ cluster's API server ready             │
//	                                                              ├──► baseline objects                    │
//	                                                              └──► controllers ────────────────────────┘
package serve
