// SPDX-License-Identifier: Apache-2.0

//go:build pinned

// What is built here and imported by nothing, so that go.mod and go.sum hold all that it needs, its tests' imports
// included.

package main

import _ "k8s.io/kubernetes/test/e2e"
