// SPDX-License-Identifier: Apache-2.0

// Package component says how each process of a cluster is run: its program, arguments, files, the question that tells
// whether it is ready, and what must be ready before it. One file a program. Everything is plain data made from a [Config],
// so a dry run can print it and golden files can pin it; nothing here touches the machine.
//
// Keys never appear in a [Spec], only the paths of the files that hold them; the one exception, the key that encrypts
// Secrets at rest, is marked so that it is never shown.
package component
