// SPDX-License-Identifier: Apache-2.0

// Package runnertest is the suite that every runner passes, and a runner in memory that fails on demand.
package runnertest
