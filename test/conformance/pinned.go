// SPDX-License-Identifier: Apache-2.0

//go:build pinned

// Packages that are built here and imported by no package, so that go.mod and go.sum of each minor hold all that they
// need, imports of their tests included.

package main

import _ "k8s.io/kubernetes/test/e2e"
