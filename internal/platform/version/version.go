// SPDX-License-Identifier: Apache-2.0

// Package version has the version of muster, and those of the upstream programs that it is built with. Versions
// of Kubernetes are in package release.
package version

// Upstream versions, as the nested modules pin them. A test compares them with the go.mod files. The versions of
// add-ons' programs are in internal/addons.
const (
	Etcd       = "v3.6.16"
	Containerd = "v2.4.2"
	Runc       = "v1.5.2"
	CNI        = "v1.9.1"
)

// Release is the version of Muster: the one place that has it. The changelog and the charts say the same, and a test
// compares them.
const Release = "v0.2.0"

// Version is Release, with the commit that it was built from behind a plus sign. The build sets it (tools/build.sh),
// nothing else may.
var Version = Release
