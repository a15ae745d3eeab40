// SPDX-License-Identifier: Apache-2.0

// Package deprecation reads, from the metrics of an API server, which deprecated APIs were requested since it started.
//
// It trusts the API server, which counts each API once for all callers. It refuses metrics that are not in Prometheus'
// text format, and what is longer than any that an API server writes. On failure nothing is known: nobody is told that
// no deprecated API is in use.
package deprecation
