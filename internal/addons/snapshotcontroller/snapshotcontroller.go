// SPDX-License-Identifier: Apache-2.0

// Package snapshotcontroller is the add-on snapshot-controller: a Deployment with what belongs to it, and the kinds of
// snapshots. `make addons` makes its image and the file with the kinds.
package snapshotcontroller

import (
	_ "embed"

	"muster.dev/muster/internal/addons/addon"
)

// Name is EKS's name of the add-on.
const Name = "snapshot-controller"

// program is the snapshot-controller's version, as images/snapshotcontroller/go.mod pins it.
const program = "v8.7.0"

//go:embed schema.json
var schema string

//go:embed manifest.yaml
var manifest string

// Addon returns the definition.
func Addon() addon.Addon {
	return addon.New(addon.Addon{
		Name: Name, Type: "storage", ServiceAccount: Name, Program: program, Schema: schema, Manifest: manifest,
		Archive: "addons/snapshot-controller.tar", Kinds: "addons/snapshot-kinds.yaml", Build: addon.MakeAddons(),
		Pods: addon.Pods{App: Name, Replicas: "replicas"},
	})
}
