// SPDX-License-Identifier: Apache-2.0

// Package metricsserver is the add-on metrics-server: a Deployment with what belongs to it, and an API. `make build`
// makes its image.
package metricsserver

import (
	_ "embed"

	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/certificates/bundle"
	"muster.dev/muster/internal/plane/component"
)

// Name is EKS's name of the add-on.
const Name = "metrics-server"

// program is metrics-server's version, as images/metricsserver/go.mod pins it.
const program = "v0.9.0"

//go:embed schema.json
var schema string

//go:embed manifest.yaml
var manifest string

// Addon returns the definition.
func Addon() addon.Addon {
	return addon.New(addon.Addon{
		Name: Name, Type: "observability", ServiceAccount: Name, Program: program,
		Schema: schema, Manifest: manifest, Fill: fill,
		Archive: "images/metrics-server.tar", Build: addon.MakeBuild("about 2 minutes on two processors"),
		Pods: addon.Pods{App: Name, Replicas: "replicas"},
	})
}

func fill(component.Config) (map[string]string, error) {
	return map[string]string{"KubeletServingBundle": bundle.Serving}, nil
}
