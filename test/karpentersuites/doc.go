// SPDX-License-Identifier: Apache-2.0

// Command karpentersuites runs Karpenter's own test suites against a cluster, and counts their specs: passed, failed, not
// applicable with a reason each, and not run yet add up to all specs that the suites have. tools/karpenter-suites.sh builds
// the suites and prepares the cluster (docs/karpenter-suites.md).
//
//	suites (ginkgo) ──► dry run: all specs ──► limits: not applicable, and why ──► a part of the rest is run ──► docs/karpenter-suites.tsv
//
// Failures:
//
//	it is interrupted            results of suites that have ended are kept; the next run adds to them
//	a spec is run a second time  the later result counts; one that is interrupted has none
//	a suite ends without report  it is an error, and no result of it is kept
package main
