// SPDX-License-Identifier: Apache-2.0

// Muster-certificate-controller approves and signs the certificate requests of kubelets, in any cluster. It is a
// program of its own because its memory is counted: muster itself holds much that it has no use for.
package main

import (
	"os"

	"muster.dev/muster/internal/certificates/certificatecontroller"
)

func main() { os.Exit(certificatecontroller.Main(os.Args[1:], os.Stdout, os.Stderr)) }
