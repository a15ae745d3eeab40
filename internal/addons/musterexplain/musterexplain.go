// SPDX-License-Identifier: Apache-2.0

// Package musterexplain is the add-on muster-explain: the APIService of explain.muster.dev, by which the API server of a
// cluster asks the account why nodes are as they are, and how it gets there. The API itself is in package explainapi.
package musterexplain

import (
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/network/clusternetwork"
	"muster.dev/muster/internal/plane/component"
)

// Name of the add-on. EKS has none like it.
const Name = component.ServiceAccountAPIs

// program is the version of the API's objects.
const program = "v0.1.0"

//go:embed manifest.yaml
var manifest string

// Addon returns the definition.
func Addon() addon.Addon {
	return addon.New(addon.Addon{
		Name: Name, Type: "observability", Publisher: "muster", Owner: "community", Program: program, Manifest: manifest, Fill: fill,
		Served: "the service runs without root, so that clusters have no VPC, by which their API servers would reach the API",
	})
}

func fill(c component.Config) (map[string]string, error) {
	if len(c.Network.Addresses) == 0 {
		return nil, errors.New("the API server has no address in the VPC yet")
	}
	if c.TrustedAuthority == "" {
		return nil, errors.New("the certificate of the cluster's authority is missing, by which its API server knows the account")
	}
	var endpoints strings.Builder
	for _, address := range c.Network.Addresses {
		fmt.Fprintf(&endpoints, "- addresses: [%s]\n", address)
	}
	return map[string]string{
		"Service": component.ServiceAccountAPIs, "Port": strconv.Itoa(clusternetwork.AccountAPIsPort),
		"Endpoints": endpoints.String(), "Authority": base64.StdEncoding.EncodeToString([]byte(c.TrustedAuthority)),
	}, nil
}
