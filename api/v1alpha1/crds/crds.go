// SPDX-License-Identifier: Apache-2.0

// Package crds holds the definitions that the management plane serves muster's kinds by. They are generated from the Go types.
package crds

import (
	"embed"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"muster.dev/muster/api/crd"
)

//go:embed *.yaml
var files embed.FS

// All returns every definition, sorted by name.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) { return crd.All(files) }
