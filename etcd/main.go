// SPDX-License-Identifier: Apache-2.0

// Etcd is upstream's etcd. It is a module apart from Kubernetes's, so that each is upgraded at its own time: a
// Kubernetes minor talks to several minors of etcd, and a plain exchange of etcd's program goes forward only. Nothing
// of upstream is changed, and nothing of Muster is imported.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
