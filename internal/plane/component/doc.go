// SPDX-License-Identifier: Apache-2.0

// Package component builds the specs of a cluster's processes: program, arguments, files, readiness probe, and the
// processes that must be ready first. One file a program. Everything is plain data made from a [Config], so a dry run
// can print it and golden files can pin it; nothing here touches the machine.
//
// Keys never appear in a [Spec], only the paths of the files that hold them; the one exception, the key that encrypts
// Secrets at rest, is marked so that it is never shown.
package component
